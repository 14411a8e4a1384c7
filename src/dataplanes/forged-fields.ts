/**
 * Header fields by which a client could pretend to be the gateway, a proxy in front of it or
 * somebody else. No data plane passes them on, neither in front of a body nor behind it.
 *
 * - `X-Forwarded-*`, `Forwarded` and `X-Real-IP` tell who asked and how. They are the gateway's,
 *   and those of proxies in front of it if it is told to trust any.
 * - `X-Envoy-*` steers an Envoy (retries, timeouts, tracing), here or behind a backend;
 *   `X-Forwarded-Client-Cert` names an authenticated client; `Proxy` becomes `HTTP_PROXY` for a CGI
 *   program (RFC 3875, 4.1.18; CVE-2016-5385). Nobody in front is trusted with these, as Envoy
 *   trusts nobody with them by default.
 * - A twin is a name with other separators than dashes, such as `X_Forwarded_For`. Servers that
 *   turn names into variables write `HTTP_X_FORWARDED_FOR` for both, so a twin could replace what
 *   the gateway has said. Some turn every character that is neither a letter nor a digit into `_`,
 *   so `X.Forwarded.For` is a twin as well.
 */

interface Fields {
  readonly names: readonly string[];
  readonly prefixes: readonly string[];
}

/** Removed from what a client sends, unless proxies in front are trusted. */
export const vouchingFields: Fields = { names: ["forwarded", "x-real-ip"], prefixes: ["x-forwarded-"] };

/** Removed always. */
export const forgedFields: Fields = {
  names: ["proxy", "x-forwarded-client-cert"],
  prefixes: ["x-envoy-"],
};

/** A client may send them, or they are the gateway's by framing; their twins are removed always. */
const fieldsWithTwins: readonly string[] = [
  "content-length",
  "sec-websocket-key",
  "transfer-encoding",
  "x-request-id",
];

/**
 * An expression for the whole of a lower-case field name that is to be removed. Its syntax is
 * common to RE2 and JavaScript, and it is anchored, so that it means the same wherever it is put.
 */
export function forgedFieldPattern(trustsFront: boolean): string {
  const removed = trustsFront ? [forgedFields] : [forgedFields, vouchingFields];
  const twins = [forgedFields, vouchingFields, { names: fieldsWithTwins, prefixes: [] }];
  const alternatives = [
    ...removed.flatMap(({ names, prefixes }) => [...names, ...prefixes.map((prefix) => `${prefix}.*`)]),
    ...twins.flatMap(({ names }) => names.flatMap(twinsOf)),
    ...twins.flatMap(({ prefixes }) => prefixes.flatMap(twinsOf).map((twin) => `${twin}.*`)),
  ];
  return `^(?:${alternatives.join("|")})$`;
}

/**
 * One expression per dash of the name: there it has something else, and anything but a letter or
 * digit at the others.
 */
export function twinsOf(name: string): readonly string[] {
  const parts = name.split("-").map((part) => part.replace(/[^a-z0-9]/g, "\\$&"));
  return parts.slice(1).map((_part, other) =>
    parts.reduce((pattern, part, index) => {
      const separator = index - 1 === other ? "[^-a-z0-9]" : "[^a-z0-9]";
      return `${pattern}${separator}${part}`;
    }),
  );
}
