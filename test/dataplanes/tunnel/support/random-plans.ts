/** Random plans of one Gateway: few names, so that listeners have nested and equal hostnames. */
import fc from "fast-check";
import { coversPattern } from "../../../../src/plan/hostname.ts";
import type { HostItem, ListenerItem, PlanItem, PortItem } from "../../../../src/plan/plan.ts";
import type { Action, Rule } from "../../../../src/plan/rule.ts";

export const GATEWAY = "infra/edge";
const PATTERNS = ["", "*.com", "*.a.com", "a.com", "x.a.com", "*.x.a.com", "y.x.a.com", "b.com"];
export const NAMES: readonly string[] = [
  "a.com",
  "x.a.com",
  "z.a.com",
  "y.x.a.com",
  "w.x.a.com",
  "b.com",
  "c.org",
];
const PATHS = ["/", "/p", "/p/q", "/p.q", "/r"];
export const ASKED: readonly string[] = [
  "/",
  "/p",
  "/p/",
  "/pq",
  "/p/q",
  "/p/q/r",
  "/p.q",
  "/pxq",
  "/r",
  "/z/p",
];

const PORTS: readonly PortItem[] = [
  { type: "port", id: "port-80", gateway: GATEWAY, transport: "tcp", port: 80, protocol: "http" },
  { type: "port", id: "port-443", gateway: GATEWAY, transport: "tcp", port: 443, protocol: "tls" },
];
export const GATEWAY_ITEM: PlanItem = { type: "gateway", id: "gateway", gateway: GATEWAY };

interface Shape {
  readonly id: number;
  readonly owner: number;
  readonly https: boolean;
  readonly hostname: string;
  readonly hosts: readonly {
    readonly hostname: string;
    readonly paths: readonly { type: "exact" | "prefix"; value: string }[];
  }[];
}

const shape: fc.Arbitrary<Shape> = fc.record({
  id: fc.integer({ min: 0, max: 7 }),
  owner: fc.integer({ min: 0, max: 3 }),
  https: fc.boolean(),
  hostname: fc.constantFrom(...PATTERNS),
  hosts: fc.array(
    fc.record({
      hostname: fc.constantFrom(...PATTERNS),
      paths: fc.array(
        fc.record({ type: fc.constantFrom("exact", "prefix"), value: fc.constantFrom(...PATHS) }),
        { minLength: 1, maxLength: 3 },
      ),
    }),
    { maxLength: 3 },
  ),
});

/**
 * As an engine would make them: one listener per id, hosts within their listener, no two listeners
 * alike on one port.
 */
export const plans: fc.Arbitrary<readonly PlanItem[]> = fc.array(shape, { maxLength: 8 }).map((shapes) => {
  const items = new Map<string, PlanItem>([...PORTS, GATEWAY_ITEM].map((item) => [item.id, item]));
  const taken = new Set<string>();
  for (const { id, owner, https, hostname, hosts } of shapes) {
    const place = `${https}/${hostname}`;
    if (taken.has(place) || items.has(`listener-${id}`)) continue;
    taken.add(place);
    const listener = listenerOf({ id, owner, https, hostname });
    items.set(listener.id, listener);
    for (const host of hosts) {
      const pattern = coversPattern(hostname, host.hostname) ? host.hostname : hostname;
      const item = hostOf(listener, pattern, host.paths);
      items.set(item.id, item);
    }
  }
  return [...items.values()];
});

function listenerOf({ id, owner, https, hostname }: Omit<Shape, "hosts">): ListenerItem {
  return {
    type: "listener",
    id: `listener-${id}`,
    gateway: GATEWAY,
    port: https ? "port-443" : "port-80",
    owner: { kind: "ListenerSet", namespace: `team-${owner}`, name: "own" },
    section: `s${id}`,
    rank: `${owner}/${id}`,
    hostname,
    protocol: https ? "HTTPS" : "HTTP",
    ...(https ? { tls: { mode: "Terminate", certificates: [] } } : {}),
  };
}

function hostOf(listener: ListenerItem, hostname: string, paths: Shape["hosts"][number]["paths"]): HostItem {
  const rules = paths.map(
    (path, index): Rule => ({
      origin: { kind: "HTTPRoute", namespace: listener.id, name: hostname || "any", rule: index, match: 0 },
      match: { path, headers: [], query: [] },
      action: answerWith(listener.id, hostname, index),
    }),
  );
  return {
    type: "host",
    id: `host-${listener.id}-${hostname}`,
    gateway: GATEWAY,
    listener: listener.id,
    hostname,
    rules,
  };
}

/** A fixed answer whose status tells the rule; the document and the proxy can both give it. */
function answerWith(listener: string, hostname: string, rule: number): Action {
  const number = Number(listener.slice("listener-".length));
  const status = 200 + number * 24 + PATTERNS.indexOf(hostname) * 3 + rule;
  return { type: "respond", status, reason: "test" };
}
