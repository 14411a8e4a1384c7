/** Certificates that clients are asked for. */
export interface ClientValidation {
  /** PEM bundles; empty when none could be resolved: then nobody is valid. */
  readonly authorities: readonly string[];
  readonly mode: "AllowValidOnly" | "AllowInsecureFallback";
  /**
   * The certificate must carry one of them, as `DNS:alice.example` or `URI:spiffe://example/alice`.
   * Absent: any. Only with AllowValidOnly.
   */
  readonly subjectAltNames?: readonly string[];
  /**
   * Tells backends who the client is, in `X-Forwarded-Client-Cert`. Only with AllowValidOnly: what
   * was not verified is never passed on.
   */
  readonly forward?: ForwardedParts;
}

/** `Names`: digest and alternative names. `Certificate`: the certificate as well. */
export type ForwardedParts = "Names" | "Certificate";

/** Asked for by one listener rather than by its port. */
interface ValidatingListener {
  readonly protocol: string;
  readonly tls?: { readonly clientValidation?: ClientValidation };
}

/** What holds at a listener: its own word, or for HTTPS that of its port. */
export function validationAt(
  { protocol, tls }: ValidatingListener,
  port: { readonly clientValidation?: ClientValidation } | undefined,
): ClientValidation | undefined {
  return tls?.clientValidation ?? (protocol === "HTTPS" ? port?.clientValidation : undefined);
}

/** Whether who was let in by `before` would be by `now`. Without a demand everybody is. */
export function isStillValid(
  before: ClientValidation | undefined,
  now: ClientValidation | undefined,
): boolean {
  if (now === before || now === undefined || now.mode !== "AllowValidOnly") return true;
  return before !== undefined && textOf(before) === textOf(now);
}

/** Items are immutable, and a connection asks for each of its requests. */
const texts: WeakMap<ClientValidation, string> = new WeakMap();

function textOf(validation: ClientValidation): string {
  const known = texts.get(validation) ?? JSON.stringify(validation);
  texts.set(validation, known);
  return known;
}
