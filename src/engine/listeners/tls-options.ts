/**
 * Keys of `tls.options` that Mergeway knows. Un-prefixed names are reserved for the API
 * (Gateway.spec.listeners.tls.options). Keys of other domains are for other implementations, and
 * are ignored. An unknown key of our own domain is a mistake, and is reported.
 */
import type { TlsVersion } from "../../plan/plan.ts";

export interface TlsOptions {
  readonly minVersion?: TlsVersion;
  readonly maxVersion?: TlsVersion;
  readonly alpn?: readonly string[];
}

export const TLS_OPTION_KEYS: Readonly<Record<keyof TlsOptions, string>> = {
  minVersion: "mergeway.dev/min-tls-version",
  maxVersion: "mergeway.dev/max-tls-version",
  alpn: "mergeway.dev/alpn",
};

const VERSIONS: readonly string[] = ["1.2", "1.3"];
const PROTOCOLS: readonly string[] = ["h2", "http/1.1"];

export function readTlsOptions(
  options: Readonly<Record<string, string>> | undefined,
): TlsOptions | { readonly problem: string } {
  const read: { minVersion?: TlsVersion; maxVersion?: TlsVersion; alpn?: readonly string[] } = {};
  for (const [key, value] of Object.entries(options ?? {})) {
    if (!key.startsWith("mergeway.dev/")) continue;
    if (key === TLS_OPTION_KEYS.minVersion || key === TLS_OPTION_KEYS.maxVersion) {
      if (!VERSIONS.includes(value))
        return { problem: `tls.options ${key} must be one of ${VERSIONS.join(", ")}` };
      read[key === TLS_OPTION_KEYS.minVersion ? "minVersion" : "maxVersion"] = value as TlsVersion;
    } else if (key === TLS_OPTION_KEYS.alpn) {
      const alpn = value.split(",").map((protocol) => protocol.trim());
      const unknown = alpn.find((protocol) => !PROTOCOLS.includes(protocol));
      if (unknown !== undefined)
        return { problem: `tls.options ${key}: ${unknown} is none of ${PROTOCOLS.join(", ")}` };
      read.alpn = alpn;
    } else return { problem: `tls.options has no key ${key}` };
  }
  if (read.minVersion === "1.3" && read.maxVersion === "1.2") {
    return { problem: `tls.options ${TLS_OPTION_KEYS.minVersion} is above ${TLS_OPTION_KEYS.maxVersion}` };
  }
  return read;
}
