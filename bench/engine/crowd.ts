/**
 * In a process of its own: 64 listeners in each of 10,000 sets of one Gateway. Prints one line of
 * JSON.
 */
import type { Resource } from "../../src/api/resource.ts";
import { makeEngine } from "./engine.ts";
import type { Change } from "./world.ts";

const SETS = 10_000;
const LISTENERS = 64;
const PARENT = { group: "gateway.networking.k8s.io", kind: "Gateway", name: "shared", namespace: "infra" };

function* crowd(): Iterable<Change> {
  const spec = { gatewayClassName: "mergeway", allowedListeners: { namespaces: { from: "All" } } };
  const metadata = { name: PARENT.name, namespace: PARENT.namespace };
  yield { key: "Gateway/infra/shared", resource: { kind: "Gateway", metadata, spec } as unknown as Resource };
  for (let s = 0; s < SETS; s++) yield set(s);
}

function set(s: number): Change {
  const listeners = Array.from({ length: LISTENERS }, (_, l) => ({
    name: `listener-${l}`,
    port: 80,
    protocol: "HTTP",
    hostname: `l${l}.s${s}.example.com`,
  }));
  const metadata = { name: `set-${s}`, namespace: "team" };
  const resource = { kind: "ListenerSet", metadata, spec: { parentRef: PARENT, listeners } };
  return { key: `ListenerSet/team/set-${s}`, resource: resource as unknown as Resource };
}

const engine = makeEngine();
const start = process.threadCpuUsage();
engine.apply(crowd());
const loaded = process.threadCpuUsage(start);
const again = process.threadCpuUsage();
engine.apply([{ key: "ListenerSet/team/set-5000", resource: undefined }]);
const removed = process.threadCpuUsage(again);
const load = (loaded.user + loaded.system) / 1000;
const removal = (removed.user + removed.system) / 1000;
const peak = process.resourceUsage().maxRSS * 1024;
process.stdout.write(`${JSON.stringify({ listeners: SETS * LISTENERS, load, removal, peak })}\n`);
