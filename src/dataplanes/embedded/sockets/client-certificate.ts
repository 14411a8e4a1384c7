/** What the certificate of a client says. */

import type { X509Certificate } from "node:crypto";
import type { ForwardedParts } from "../../../plan/client-validation.ts";

/** Alternative names as policies write them: `DNS:alice.example`, `URI:spiffe://example/alice`. */
export function subjectAltNames({ subjectAltName }: X509Certificate): readonly string[] {
  // A value with a comma, or with anything else that is not plain, stands in quotes as in JSON.
  const entries = subjectAltName?.matchAll(/(?:^|, )([A-Za-z][A-Za-z ]*):("(?:[^"\\]|\\.)*"|[^,"]*)/g) ?? [];
  return [...entries].flatMap(([, type, written = ""]) => {
    const value = written.startsWith('"') ? parsed(written) : written;
    return value === undefined ? [] : [`${type}:${type === "DNS" ? value.toLowerCase() : value}`];
  });
}

function parsed(quoted: string): string | undefined {
  try {
    return String(JSON.parse(quoted));
  } catch {
    return undefined;
  }
}

/** Whether the certificate has one of the names; absent: any certificate will do. */
export function carriesOne(certificate: X509Certificate, names: readonly string[] | undefined): boolean {
  if (names === undefined) return true;
  const own = subjectAltNames(certificate);
  return names.some((name) => own.includes(name));
}

/** As Envoy writes `X-Forwarded-Client-Cert`. */
export function forwardedText(certificate: X509Certificate, parts: ForwardedParts): string {
  const digest = certificate.fingerprint256.replaceAll(":", "").toLowerCase();
  const names = subjectAltNames(certificate);
  const named = (type: "URI" | "DNS"): readonly string[] =>
    names
      .filter((name) => name.startsWith(`${type}:`))
      .map((name) => `${type}=${fieldValue(name.slice(type.length + 1))}`);
  return [
    `Hash=${digest}`,
    ...(parts === "Certificate" ? [`Cert="${encoded(certificate.toString())}"`] : []),
    ...named("URI"),
    ...named("DNS"),
  ].join(";");
}

/** A name that could be read as another part of the field is left out. */
function fieldValue(name: string): string {
  return /^[\x21-\x7e]*$/.test(name) && !/[;,="\\]/.test(name) ? name : "";
}

const ESCAPES: Readonly<Record<string, string>> = {
  "\n": "%0A",
  " ": "%20",
  "+": "%2B",
  "/": "%2F",
  "=": "%3D",
};

function encoded(pem: string): string {
  return pem.replace(/[\n +/=]/g, (char) => ESCAPES[char] ?? "");
}
