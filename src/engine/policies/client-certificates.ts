/**
 * Certificates that clients must present, as a ClientPolicy asks for them. A listener that ends TLS
 * is known by its server name, so unlike the rest of a ClientPolicy this can be confined to a set
 * or a listener.
 *
 * - What is demanded at several levels holds together: a client must meet each demand. Authorities
 *   that not all of them trust are trusted by none, and so with names.
 * - Gateway.spec.tls.frontend counts as an override of the Gateway, for HTTPS.
 * - What cannot be read or resolved lets nobody in.
 */
import type { ClientCertificates } from "../../api/client-policy.ts";
import { type Key, keyFor, partsOf } from "../../api/key.ts";
import type { Lookup } from "../../graph/lookup.ts";
import type { ClientValidation } from "../../plan/client-validation.ts";
import { targetKey } from "../foundation/policy-targets.ts";
import { type Failure, fails, holds, type Verdict } from "../foundation/verdict.ts";
import type { MergedListener } from "../listeners/merge.ts";
import type { Certificates } from "../references/certificates.ts";
import { type AttachedPolicies, type AttachedPolicy, policyAt } from "./attached-policies.ts";
import type { Unreadable } from "./request-limits.ts";

/** One demand, before its references are resolved. */
export interface CertificateDemand extends Omit<ClientValidation, "authorities"> {
  /** Names of ConfigMaps in the policy's namespace. */
  readonly configMaps: readonly string[];
}

/** Of a section of a policy; present and undefined: it cannot be read. */
interface Demanding {
  readonly clientCertificates?: CertificateDemand | undefined;
}

/** Every handshake sends the names of all authorities, and listeners carry them. */
const MOST_BYTES = 64 * 1024;

const NOBODY: ClientValidation = { authorities: [], mode: "AllowValidOnly" };

export function readClientCertificates({
  caCertificateRefs,
  mode = "AllowValidOnly",
  subjectAltNames,
  forward,
}: ClientCertificates): CertificateDemand | Unreadable {
  const insists = mode === "AllowValidOnly";
  if (!insists && mode !== "AllowInsecureFallback") return { problem: `mode: ${mode} is not known` };
  if (caCertificateRefs.length === 0) return { problem: "caCertificateRefs has none" };
  if (!insists && subjectAltNames !== undefined)
    return { problem: "subjectAltNames: names are compared with mode AllowValidOnly alone" };
  if (!insists && forward !== undefined)
    return { problem: "forward: only certificates that mode AllowValidOnly verifies are passed on" };
  const names: string[] = [];
  for (const { type, hostname, uri } of subjectAltNames ?? []) {
    const name = type === "Hostname" ? hostname && `DNS:${hostname.toLowerCase()}` : uri && `URI:${uri}`;
    if (name === undefined) return { problem: `subjectAltNames: type ${type} has no name` };
    names.push(name);
  }
  return {
    configMaps: caCertificateRefs.map(({ name }) => name),
    mode,
    ...(subjectAltNames === undefined ? {} : { subjectAltNames: names }),
    ...(forward === undefined ? {} : { forward }),
  };
}

export interface DemandSources {
  readonly clientPolicies: AttachedPolicies<Demanding>;
  readonly certificates: Certificates;
}

/** What holds on the ports of a Gateway where no nearer level says anything. */
export function validationOfGateway(
  gateway: Key,
  frontend: ClientValidation | undefined,
  lookup: Lookup,
  sources: DemandSources,
): ClientValidation | undefined {
  return together(frontend, [targetKey(gateway, undefined)], lookup, sources);
}

/** What a listener asks for that its port does not. */
export function validationOfListener(
  { gateway, owner, section, protocol }: MergedListener,
  frontend: ClientValidation | undefined,
  lookup: Lookup,
  sources: DemandSources,
): ClientValidation | undefined {
  const far = targetKey(gateway, undefined);
  const near = [
    ...(owner.key === gateway ? [] : [targetKey(owner.key, undefined)]),
    targetKey(owner.key, section),
  ];
  const asks = near.some((target) => {
    const policy = policyAt(target, lookup, sources.clientPolicies);
    return [policy?.defaults, policy?.overrides].some((each) => each && "clientCertificates" in each);
  });
  if (protocol === "TLS") return together(undefined, [far, ...near], lookup, sources);
  return asks ? together(frontend, [far, ...near], lookup, sources) : undefined;
}

function together(
  frontend: ClientValidation | undefined,
  targets: readonly string[],
  lookup: Lookup,
  sources: DemandSources,
): ClientValidation | undefined {
  const held: ClientValidation[] = frontend === undefined ? [] : [frontend];
  let byDefault: ClientValidation | undefined;
  for (const target of targets) {
    const policy = policyAt(target, lookup, sources.clientPolicies);
    if (policy === undefined) continue;
    const { defaults, overrides } = policy;
    if (defaults !== undefined && "clientCertificates" in defaults)
      byDefault = resolved(policy, defaults, lookup, sources);
    if (overrides === undefined || !("clientCertificates" in overrides)) continue;
    held.push(resolved(policy, overrides, lookup, sources));
    byDefault = undefined;
  }
  const all = byDefault === undefined ? held : [...held, byDefault];
  return all.length === 0 ? undefined : all.reduce(bothOf);
}

function resolved(
  policy: AttachedPolicy<Demanding>,
  { clientCertificates: demand }: Demanding,
  lookup: Lookup,
  sources: DemandSources,
): ClientValidation {
  if (demand === undefined) return NOBODY;
  const { configMaps: _, ...rest } = demand;
  return { authorities: readings(policy.key, demand, lookup, sources).authorities, ...rest };
}

function readings(
  policy: Key,
  { configMaps }: CertificateDemand,
  lookup: Lookup,
  { certificates }: Pick<DemandSources, "certificates">,
): { readonly authorities: readonly string[]; readonly failure?: Failure } {
  const { namespace } = partsOf(policy);
  const authorities: string[] = [];
  let failure: Failure | undefined;
  for (const name of configMaps) {
    const reading = lookup.get(certificates.authorities, keyFor("ConfigMap", namespace, name));
    const problem =
      reading === undefined ? "does not exist" : "problem" in reading ? `: ${reading.problem}` : undefined;
    if (problem === undefined && reading !== undefined && "pem" in reading) authorities.push(reading.pem);
    else failure ??= unusable(`ConfigMap ${name} ${problem}`.replace(" :", ":"));
  }
  const bytes = authorities.reduce((sum, { length }) => sum + length, 0);
  if (bytes <= MOST_BYTES) return { authorities, ...(failure === undefined ? {} : { failure }) };
  const message = `the ConfigMaps hold certificates of ${bytes} bytes; at most ${MOST_BYTES} are taken`;
  return { authorities: [], failure: unusable(message) };
}

function unusable(message: string): Failure {
  return { reason: "InvalidCACertificateRef", message: `clientCertificates: ${message}` };
}

/** A client meets it that meets both. */
function bothOf(a: ClientValidation, b: ClientValidation): ClientValidation {
  const mode = a.mode === "AllowValidOnly" ? a.mode : b.mode;
  const trusted = new Set(b.authorities.flatMap(certificatesIn).map(bodyOf));
  const common = a.authorities.flatMap(certificatesIn).filter((pem) => trusted.has(bodyOf(pem)));
  const subjectAltNames = [a.subjectAltNames, b.subjectAltNames]
    .filter((names) => names !== undefined)
    .reduce<readonly string[] | undefined>(
      (left, right) => (left === undefined ? right : left.filter((name) => right.includes(name))),
      undefined,
    );
  const forward =
    a.forward === "Certificate" || b.forward === "Certificate" ? "Certificate" : (a.forward ?? b.forward);
  return {
    authorities: common.length === 0 ? [] : [`${common.join("\n")}\n`],
    mode,
    ...(subjectAltNames === undefined ? {} : { subjectAltNames }),
    ...(forward === undefined ? {} : { forward }),
  };
}

function certificatesIn(bundle: string): readonly string[] {
  return bundle.match(/-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g) ?? [];
}

function bodyOf(pem: string): string {
  return pem.replace(/-----[A-Z ]+-----|\s/g, "");
}

/** Whether all ConfigMaps can be used; undefined: the policy refers to none. */
export function certificateVerdict(
  policy: AttachedPolicy<Demanding>,
  lookup: Lookup,
  sources: Pick<DemandSources, "certificates">,
): Verdict | undefined {
  const demands = [policy.overrides, policy.defaults].flatMap((each) => each?.clientCertificates ?? []);
  if (demands.length === 0) return undefined;
  for (const demand of demands) {
    const { failure } = readings(policy.key, demand, lookup, sources);
    if (failure !== undefined) return fails("ResolvedRefs", failure);
  }
  return holds("ResolvedRefs", "ResolvedRefs", "all references resolve");
}
