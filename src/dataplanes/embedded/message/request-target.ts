/**
 * What a request asks for, put into the one form that is both routed on and sent to the backend.
 *
 * - Origin form (`/a?b`) and absolute form (`http://host/a?b`, whose authority then replaces Host)
 *   are understood; `*` is the server's own, and which method may ask for it is the caller's matter
 *   (RFC 9112, 3.2.4).
 * - Only visible ASCII; no `#` and no `\`: what one parser reads as a separator another must not
 *   read as text.
 * - Escapes must be whole (`%2F`), and `%00` is refused. Escaped unreserved characters are decoded,
 *   the others kept with capital digits, so `%2F` stays a part of its segment.
 * - `.` and `..` segments are resolved, `//` becomes `/`.
 * - The query is passed on untouched.
 */

export type RequestTarget =
  | { readonly path: string; readonly query: string; readonly authority?: string }
  | { readonly invalid: string };

const plain = /^\/(?:[A-Za-z0-9_~!$&'()*+,;=:@-]|(?<!\/)\/|(?<!\/)\.)*$/;
const allowed = /^[\x21\x22\x24-\x5b\x5d-\x7e]*$/;
const absolute = /^https?:\/\/([^/?]*)([^?]*)(\?.*)?$/is;
const authorityForm = /^(?:[a-z0-9._~-]+|\[[0-9a-f:.]+\])(?::(\d{1,5}))?$/i;
const unreserved = /[A-Za-z0-9._~-]/;

export function parseTarget(target: string): RequestTarget {
  if (target === "*") return { path: "*", query: "" };
  const question = target.indexOf("?");
  const path = question < 0 ? target : target.slice(0, question);
  const query = question < 0 ? "" : target.slice(question + 1);
  if (query !== "" && !allowed.test(query))
    return { invalid: "the query has characters that are not allowed" };
  if (plain.test(path)) return { path, query };
  if (path.charCodeAt(0) === 47) return withNormalPath(path, query);
  const parts = absolute.exec(target);
  if (parts === null) return { invalid: "the request target is neither a path nor a URL" };
  const authority = parts[1] as string;
  if (!isAuthority(authority)) return { invalid: "the request target has no valid host" };
  const normal = withNormalPath(parts[2] || "/", query);
  return "invalid" in normal ? normal : { ...normal, authority };
}

/** A host with or without a port; no user information, nothing that could be read as a path. */
export function isAuthority(authority: string): boolean {
  const parts = authorityForm.exec(authority);
  return parts !== null && Number(parts[1] ?? 0) <= 65_535;
}

function withNormalPath(path: string, query: string): RequestTarget {
  if (!allowed.test(path)) return { invalid: "the path has characters that are not allowed" };
  const decoded = decodeUnreserved(path);
  if (decoded === undefined) return { invalid: "the path has an invalid escape" };
  return { path: resolveSegments(decoded), query };
}

function decodeUnreserved(path: string): string | undefined {
  if (!path.includes("%")) return path;
  let result = "";
  for (let at = 0; at < path.length; at++) {
    const char = path[at] as string;
    if (char !== "%") {
      result += char;
      continue;
    }
    const digits = path.slice(at + 1, at + 3);
    if (!/^[0-9A-Fa-f]{2}$/.test(digits) || digits === "00") return undefined;
    const decoded = String.fromCharCode(Number.parseInt(digits, 16));
    result += unreserved.test(decoded) ? decoded : `%${digits.toUpperCase()}`;
    at += 2;
  }
  return result;
}

function resolveSegments(path: string): string {
  const segments: string[] = [];
  const parts = path.split("/");
  for (const [index, part] of parts.entries()) {
    const last = index === parts.length - 1;
    if (part === "..") segments.pop();
    else if (part !== "." && part !== "") segments.push(part);
    if (last && (part === "" || part === "." || part === "..") && segments.length > 0) segments.push("");
  }
  return `/${segments.join("/")}`;
}
