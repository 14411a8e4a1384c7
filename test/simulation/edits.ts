/** What people do in a history. */
import { certificateFile } from "../engine/case-file.ts";
import { type Cluster, GATEWAY, GATEWAYS, ROUTES, SECRETS, SETS, TRAFFIC_POLICIES } from "./cluster.ts";
import type { World } from "./world.ts";

export type Happening = (cluster: Cluster) => void;

const SETS_AT_MOST = 5;
const TEAMS = ["team-a", "team-b"];
export const PORTS: readonly number[] = [80, 8080];

function setName(world: World): { readonly namespace: string; readonly name: string } {
  return { namespace: world.random.pick(TEAMS), name: `set-${world.random.integer(1, SETS_AT_MOST)}` };
}

/**
 * Makes a set, or makes it another: so one hostname has several owners, and entries change and
 * move.
 */
const writeSet: Happening = ({ world, server }) => {
  const { namespace, name } = setName(world);
  const count = world.random.integer(1, 2);
  const listeners = Array.from({ length: count }, (_, index) => ({
    name: `entry-${index + 1}`,
    ...(world.random.chance(0.3)
      ? { port: 443, protocol: "HTTPS", tls: { mode: "Terminate", certificateRefs: [secretRef(world)] } }
      : { port: world.random.pick(PORTS), protocol: "HTTP" }),
    hostname: `${world.random.pick(["one", "two", "three", "four"])}.example.com`,
    allowedRoutes: { namespaces: { from: "Same" } },
  }));
  const entries = listeners.map(({ hostname, port }) => `${hostname}:${port}`).join(", ");
  world.tell("a team", `writes ListenerSet ${namespace}/${name}: ${entries}`);
  const parentRef = { ...GATEWAY, kind: "Gateway", group: "gateway.networking.k8s.io" };
  server.put(SETS, { metadata: { namespace, name }, spec: { parentRef, listeners } });
};

function deleteOneOf(collection: string, kind: string): Happening {
  return ({ world, server }) => {
    const objects = server.objects(collection);
    if (objects.length === 0) return;
    const { namespace = "", name } = world.random.pick(objects).metadata;
    world.tell("a team", `deletes ${kind} ${namespace}/${name}`);
    server.remove(collection, namespace, name);
  };
}

const deleteSet: Happening = deleteOneOf(SETS, "ListenerSet");

const writeRoute: Happening = ({ world, server }) => {
  const { namespace, name: set } = setName(world);
  const name = `route-${world.random.integer(1, 3)}`;
  world.tell("a team", `writes HTTPRoute ${namespace}/${name} for ${set}`);
  const parentRefs = [{ group: "gateway.networking.k8s.io", kind: "ListenerSet", name: set }];
  const path = { type: "PathPrefix", value: `/${world.random.integer(1, 9)}` };
  const rules = [
    { matches: [{ path }], backendRefs: [{ group: "", kind: "Service", name: "web", port: 80, weight: 1 }] },
  ];
  server.put(ROUTES, { metadata: { namespace, name }, spec: { parentRefs, rules } });
};

const deleteRoute: Happening = deleteOneOf(ROUTES, "HTTPRoute");

function secretRef({ random }: World): {
  readonly group: "";
  readonly kind: "Secret";
  readonly name: string;
} {
  return { group: "", kind: "Secret", name: `certificate-${random.integer(1, 2)}` };
}

/** A certificate comes, is renewed, or is spoilt. Secrets are read when a listener wants them. */
const writeSecret: Happening = ({ world, server }) => {
  const namespace = world.random.pick(TEAMS);
  const { name } = secretRef(world);
  const pair = world.random.pick(["a.example.com", "renewed-a.example.com", "b.example.com", "nothing"]);
  world.tell("a team", `writes Secret ${namespace}/${name}: ${pair}`);
  const data = pair === "nothing" ? {} : dataOf(pair);
  server.put(SECRETS, { metadata: { namespace, name }, type: "kubernetes.io/tls", data });
};

function dataOf(pair: string): Readonly<Record<string, string>> {
  const encoded = (file: string): string => Buffer.from(certificateFile(file)).toString("base64");
  return { "tls.crt": encoded(`${pair}.crt`), "tls.key": encoded(`${pair}.key`) };
}

const deleteSecret: Happening = deleteOneOf(SECRETS, "Secret");

/** Of the platform or of a team, with a target that may not exist. */
const writePolicy: Happening = ({ world, server }) => {
  const isOfPlatform = world.random.chance(0.3);
  const { namespace, name: set } = isOfPlatform ? { ...GATEWAY } : setName(world);
  const kind = isOfPlatform ? "Gateway" : world.random.pick(["ListenerSet", "ListenerSet", "HTTPRoute"]);
  const target = kind === "HTTPRoute" ? `route-${world.random.integer(1, 3)}` : set;
  const name = `policy-${world.random.integer(1, 2)}`;
  world.tell("a team", `writes TrafficPolicy ${namespace}/${name} for ${kind} ${target}`);
  const settings = world.random.pick([
    { clientAddresses: { allow: [`10.${world.random.integer(0, 9)}.0.0/16`] } },
    { rateLimits: [{ requests: world.random.integer(1, 9), period: "1s", per: "ClientAddress" }] },
    { clientAddresses: { deny: ["no network"] } },
  ]);
  const targetRefs = [{ group: "gateway.networking.k8s.io", kind, name: target }];
  const level = world.random.pick(["defaults", "overrides"]);
  server.put(TRAFFIC_POLICIES, { metadata: { namespace, name }, spec: { targetRefs, [level]: settings } });
};

const deletePolicy: Happening = deleteOneOf(TRAFFIC_POLICIES, "TrafficPolicy");

/** The port of the Gateway's own listener changes: an item goes, another one comes. */
const movePort: Happening = ({ world, server }) => {
  const gateway = server.get(GATEWAYS, GATEWAY.namespace, GATEWAY.name);
  if (gateway === undefined) return;
  const spec = gateway["spec"] as { readonly listeners: readonly object[] };
  const port = world.random.pick([80, 8080, 9090]);
  world.tell("the owner", `moves the Gateway's listener to port ${port}`);
  server.put(GATEWAYS, { ...gateway, spec: { ...spec, listeners: [{ ...spec.listeners[0], port }] } });
};

/** Many sets at once, which is when controllers see changes at very different times. */
const burst: Happening = (cluster) => {
  for (let index = 0; index < 4; index++) writeSet(cluster);
};

export const EDITS: readonly Happening[] = [
  writeSet,
  writeSet,
  writeSet,
  deleteSet,
  writeRoute,
  writeRoute,
  deleteRoute,
  writeSecret,
  writeSecret,
  deleteSecret,
  writePolicy,
  writePolicy,
  deletePolicy,
  movePort,
  burst,
];
