/** Short ways to write plans for the tests of data planes. */

import type { BackendItem, BackendProtocol } from "../../../src/plan/backend.ts";
import { type CertificateItem, PrivateKey } from "../../../src/plan/certificate.ts";
import type { GuardCheck, GuardItem } from "../../../src/plan/guard.ts";
import type { HostItem, ListenerItem, PortItem, PortProtocol } from "../../../src/plan/plan.ts";
import type { Action, Filters, ForwardAction, PathMatch, Rule, RuleOrigin } from "../../../src/plan/rule.ts";
import type { TestCertificate } from "./certificates.ts";

export const gateway = "infra/edge";

export function port(
  number: number,
  protocol: PortProtocol = "http",
  more: Partial<PortItem> = {},
): PortItem {
  const transport = protocol === "udp" ? "udp" : "tcp";
  return { type: "port", id: `port-${number}`, gateway, transport, port: number, protocol, ...more };
}

export function listener(
  id: string,
  of: PortItem,
  hostname: string,
  more: Partial<ListenerItem> = {},
): ListenerItem {
  return {
    type: "listener",
    id,
    gateway,
    port: of.id,
    owner: { kind: "ListenerSet", namespace: id, name: "own" },
    section: id,
    hostname,
    protocol: of.protocol === "http" ? "HTTP" : "HTTPS",
    ...more,
  };
}

/** An HTTPS listener that shows these certificates. */
export function secure(
  id: string,
  of: PortItem,
  hostname: string,
  certificates: readonly CertificateItem[],
): ListenerItem {
  return listener(id, of, hostname, {
    tls: { mode: "Terminate", certificates: certificates.map((item) => item.id) },
  });
}

export function certificate(
  id: string,
  pair: TestCertificate,
  names: readonly string[] = [],
): CertificateItem {
  return { type: "certificate", id, gateway, chain: pair.cert, key: new PrivateKey(pair.key), names };
}

export function host(of: ListenerItem, hostname: string, rules: readonly Rule[]): HostItem {
  return { type: "host", id: `host-${of.id}-${hostname}`, gateway, listener: of.id, hostname, rules };
}

export function backend(
  id: string,
  endpoints: readonly number[],
  more: Partial<BackendItem> = {},
): BackendItem {
  return {
    type: "backend",
    id,
    gateway,
    service: { namespace: "apps", name: id, port: 80 },
    protocol: "http" as BackendProtocol,
    endpoints: endpoints.map((number) => ({ address: "127.0.0.1", port: number })),
    ...more,
  };
}

export function guard(id: string, check: GuardCheck): GuardItem {
  return { type: "guard", id, gateway, policy: { namespace: "apps", name: id }, check };
}

export interface RuleShape {
  readonly path?: PathMatch | string;
  readonly action: Action;
  readonly kind?: RuleOrigin["kind"];
  readonly guards?: readonly string[];
}

export function rule({ path, action, kind = "HTTPRoute", guards }: RuleShape): Rule {
  const match = typeof path === "string" ? ({ type: "prefix", value: path } as const) : path;
  return {
    origin: { kind, namespace: "apps", name: "route", rule: 0, match: 0 },
    match: { ...(match === undefined ? {} : { path: match }), headers: [], query: [] },
    action,
    ...(guards === undefined ? {} : { guards }),
  };
}

export function forwardTo(
  to: string | ForwardAction["backends"],
  more: Partial<Omit<ForwardAction, "type" | "backends">> = {},
): ForwardAction {
  const backends = typeof to === "string" ? [{ backend: to, weight: 1, filters: {} as Filters }] : to;
  return { type: "forward", backends, filters: {}, timeouts: {}, ...more };
}
