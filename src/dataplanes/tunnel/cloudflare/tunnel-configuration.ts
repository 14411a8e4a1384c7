/**
 * The configuration of a tunnel that leads to our proxy: one last rule, for everything. Whatever
 * else stands in it is not ours:
 *
 * - rules of others stay where they are, before ours, and are reported because they take their
 *   hostnames away from the Gateway;
 * - `originRequest`, `warp-routing` and fields we do not know are carried over;
 * - a last rule that leads elsewhere than to this machine or to a fixed answer is somebody's, and
 *   is not replaced but reported.
 */
import { isDeepStrictEqual } from "node:util";

/** As the API has it; fields that we do not know are kept. */
export interface TunnelConfiguration {
  readonly ingress?: readonly IngressRule[];
  readonly [field: string]: unknown;
}

export interface IngressRule {
  readonly hostname?: string;
  readonly path?: string;
  readonly service: string;
  readonly originRequest?: Readonly<Record<string, unknown>>;
  readonly [field: string]: unknown;
}

/** Where a connector finds our proxy. */
export interface Origin {
  readonly address: string;
  readonly port: number;
  /** HTTP/2, which cloudflared speaks with TLS alone: what gRPC needs. */
  readonly http2: boolean;
}

export type Desired =
  | {
      readonly configuration: TunnelConfiguration;
      readonly differs: boolean;
      /** Rules of others that come before ours. */
      readonly foreign: readonly IngressRule[];
    }
  | { readonly foreignCatchAll: string };

export function desiredConfiguration(current: TunnelConfiguration | undefined, origin: Origin): Desired {
  const rules = current?.ingress ?? [];
  const foreign = rules.filter((rule) => !isCatchAll(rule));
  const last = rules.findLast(isCatchAll);
  if (last !== undefined && !isReplaceable(last.service)) return { foreignCatchAll: last.service };
  const configuration = { ...current, ingress: [...foreign, catchAll(origin)] };
  return { configuration, differs: !isDeepStrictEqual(current, configuration), foreign };
}

/**
 * The fields of our rule; the certificate of our own proxy on the same machine is not worth
 * checking.
 */
function catchAll({ address, port, http2 }: Origin): IngressRule {
  const service = `${http2 ? "https" : "http"}://${address}:${port}`;
  return http2 ? { service, originRequest: { http2Origin: true, noTLSVerify: true } } : { service };
}

function isCatchAll({ hostname, path }: IngressRule): boolean {
  return (
    (hostname === undefined || hostname === "" || hostname === "*") && (path === undefined || path === "")
  );
}

/** An earlier rule of ours, or one that serves nothing. */
function isReplaceable(service: string): boolean {
  return (
    /^http_status:\d{3}$/.test(service) ||
    /^https?:\/\/(127\.\d+\.\d+\.\d+|localhost|\[::1\]):\d+$/.test(service)
  );
}
