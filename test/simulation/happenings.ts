/** What happens in a history: what people do, and what goes wrong. */
import { type Cluster, GATEWAY, GATEWAYS, LEASES, ROUTES, SETS } from "./cluster.ts";
import type { World } from "./world.ts";

type Happening = (cluster: Cluster) => void;

/** Nothing goes wrong for longer. */
export const MOST_SPELL_MS = 15_000;
const SETS_AT_MOST = 5;
const TEAMS = ["team-a", "team-b"];
const PORTS = [80, 8080];

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
    port: world.random.pick(PORTS),
    protocol: "HTTP",
    hostname: `${world.random.pick(["one", "two", "three", "four"])}.example.com`,
    allowedRoutes: { namespaces: { from: "Same" } },
  }));
  const entries = listeners.map(({ hostname, port }) => `${hostname}:${port}`).join(", ");
  world.tell("a team", `writes ListenerSet ${namespace}/${name}: ${entries}`);
  const parentRef = { ...GATEWAY, kind: "Gateway", group: "gateway.networking.k8s.io" };
  server.put(SETS, { metadata: { namespace, name }, spec: { parentRef, listeners } });
};

const deleteSet: Happening = ({ world, server }) => {
  const sets = server.objects(SETS);
  if (sets.length === 0) return;
  const { namespace = "", name } = world.random.pick(sets).metadata;
  world.tell("a team", `deletes ListenerSet ${namespace}/${name}`);
  server.remove(SETS, namespace, name);
};

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

const deleteRoute: Happening = ({ world, server }) => {
  const routes = server.objects(ROUTES);
  if (routes.length === 0) return;
  const { namespace = "", name } = world.random.pick(routes).metadata;
  world.tell("a team", `deletes HTTPRoute ${namespace}/${name}`);
  server.remove(ROUTES, namespace, name);
};

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
  deleteRoute,
  movePort,
  burst,
];

/** Somebody else writes what is ours. */
const spoilStatus: Happening = ({ world, server }) => {
  const sets = server.objects(SETS);
  if (sets.length === 0) return;
  const set = world.random.pick(sets);
  world.tell("a script", `empties the status of ListenerSet ${set.metadata.namespace}/${set.metadata.name}`);
  server.put(SETS, { ...set, status: {} });
};

const forgetVersions: Happening = ({ world, server }) => {
  world.tell("API server", "forgets all earlier versions");
  server.forgetVersions();
};

function place(world: World, list: readonly unknown[]): number {
  return world.random.integer(0, list.length - 1);
}

/** Something goes wrong, and after a while it is over. */
function spell(
  begin: (cluster: Cluster) => { readonly what: string; readonly end: () => void } | undefined,
): Happening {
  return (cluster) => {
    const { world } = cluster;
    const begun = begin(cluster);
    if (begun === undefined) return;
    world.tell("world", begun.what);
    world.outside(world.random.between(200, MOST_SPELL_MS), () => {
      world.tell("world", `no longer: ${begun.what}`);
      begun.end();
    });
  };
}

const cutFromApi = spell(({ world, weather, controllers }) => {
  const at = place(world, weather);
  const api = weather[at]?.api;
  if (api === undefined) return undefined;
  api.isCut = true;
  return {
    what: `${controllers[at]?.process.name} is cut off from the API server`,
    end: () => {
      api.isCut = false;
    },
  };
});

/**
 * The controller sees everything late: the one that feeds a pod may be ahead of the one that leads.
 */
const slowApi = spell(({ world, weather, controllers }) => {
  const at = place(world, weather);
  const api = weather[at]?.api;
  if (api === undefined) return undefined;
  const before = api.delayMs;
  api.delayMs = world.random.between(200, 4_000);
  return {
    what: `${controllers[at]?.process.name} sees the API server with up to ${Math.round(api.delayMs)} ms delay`,
    end: () => {
      api.delayMs = Math.min(before, 30);
    },
  };
});

const lossyApi = spell(({ world, weather, controllers }) => {
  const at = place(world, weather);
  const api = weather[at]?.api;
  if (api === undefined) return undefined;
  api.loss = world.random.between(0.05, 0.5);
  return {
    what: `${controllers[at]?.process.name} loses ${Math.round(100 * api.loss)} % of its requests`,
    end: () => {
      api.loss = 0;
    },
  };
});

const overload = spell(({ weather }) => {
  for (const { api } of weather) api.isOverloaded = true;
  return {
    what: "the API server is overloaded",
    end: () => {
      for (const { api } of weather) api.isOverloaded = false;
    },
  };
});

/** Absence is believed after it was seen several times; this is over before. */
const startingServer: Happening = ({ world, weather }) => {
  const ms = world.random.between(100, 1_500);
  world.tell("API server", `does not know its custom resources for ${Math.round(ms)} ms`);
  for (const { api } of weather) api.isStarting = true;
  world.outside(ms, () => {
    for (const { api } of weather) api.isStarting = false;
  });
};

const cutFromPod = spell(({ world, weather, controllers, pods }) => {
  const at = place(world, weather);
  const pod = pods[place(world, pods)]?.name;
  const cutFrom = weather[at]?.cutFrom;
  if (pod === undefined || cutFrom === undefined) return undefined;
  cutFrom.add(pod);
  return { what: `${controllers[at]?.process.name} is cut off from ${pod}`, end: () => cutFrom.delete(pod) };
});

const slowStreams = spell(({ world, weather, controllers }) => {
  const at = place(world, weather);
  const found = weather[at];
  if (found === undefined) return undefined;
  found.streamDelayMs = world.random.between(200, 3_000);
  return {
    what: `streams of ${controllers[at]?.process.name} are slow`,
    end: () => {
      found.streamDelayMs = 20;
    },
  };
});

const stuckPlane = spell(({ world, pods }) => {
  const pod = pods[place(world, pods)];
  if (pod === undefined) return undefined;
  pod.plane.isStuck = true;
  return {
    what: `the data plane of ${pod.name} takes nothing`,
    end: () => {
      pod.plane.isStuck = false;
    },
  };
});

const takenPort = spell(({ world, pods }) => {
  const pod = pods[place(world, pods)];
  if (pod === undefined) return undefined;
  const port = world.random.pick(PORTS);
  world.after(0, () => pod.plane.setTaken(port, true), pod.process);
  return {
    what: `somebody else has port ${port} at ${pod.name}`,
    end: () => world.after(0, () => pod.plane.setTaken(port, false), pod.process),
  };
});

const frozenController = spell(({ world, aliveControllers }) => {
  if (aliveControllers.length === 0) return undefined;
  const { process } = world.random.pick(aliveControllers);
  process.isFrozen = true;
  return { what: `${process.name} hangs`, end: () => world.thaw(process) };
});

const frozenPod = spell(({ world, alivePods }) => {
  if (alivePods.length === 0) return undefined;
  const { process } = world.random.pick(alivePods);
  process.isFrozen = true;
  return { what: `${process.name} hangs`, end: () => world.thaw(process) };
});

const killController: Happening = (cluster) => {
  const { world } = cluster;
  const at = place(world, cluster.controllers);
  const controller = cluster.controllers[at];
  if (controller?.process.isAlive !== true) return;
  if (world.random.chance(0.5)) controller.kill();
  else controller.stop();
  world.outside(world.random.between(3_500, 12_000), () => cluster.startController(at));
};

const killPod: Happening = (cluster) => {
  const { world } = cluster;
  const at = place(world, cluster.pods);
  cluster.killPod(at);
  const isAnew = world.random.chance(0.3);
  world.outside(world.random.between(500, 10_000), () => cluster.startPod(at, isAnew));
};

const resetStreams: Happening = ({ world, aliveControllers }) => {
  if (aliveControllers.length === 0) return;
  const { process, streams } = world.random.pick(aliveControllers);
  world.tell("network", `resets the streams of ${process.name}`);
  for (const stream of [...streams]) stream.end("connection reset");
};

const breakWatches: Happening = ({ world, aliveControllers }) => {
  if (aliveControllers.length === 0) return;
  const { process, client } = world.random.pick(aliveControllers);
  world.tell("network", `breaks the watches of ${process.name}`);
  world.after(0, () => client.breakWatches(), process);
};

/** Somebody takes the lease away: whoever is quicker leads. */
const takeLease: Happening = ({ world, server }) => {
  world.tell("a person", "deletes the lease");
  server.remove(LEASES, "mergeway-system", "mergeway");
};

export const FAULTS: readonly Happening[] = [
  spoilStatus,
  forgetVersions,
  cutFromApi,
  slowApi,
  slowApi,
  lossyApi,
  overload,
  startingServer,
  cutFromPod,
  slowStreams,
  stuckPlane,
  takenPort,
  frozenController,
  frozenPod,
  killController,
  killController,
  killPod,
  resetStreams,
  breakWatches,
  takeLease,
];

/** Of data planes alone. */
export const STUMBLES: readonly Happening[] = [stuckPlane, takenPort];
