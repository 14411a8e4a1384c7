/** What goes wrong in a history. */
import { type Cluster, LEASES, SETS } from "./cluster.ts";
import { type Happening, PORTS } from "./edits.ts";
import type { World } from "./world.ts";

/** Nothing goes wrong for longer. */
export const MOST_SPELL_MS = 15_000;

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

const doubledMessages = spell(({ world, weather, controllers }) => {
  const at = place(world, weather);
  const found = weather[at];
  if (found === undefined) return undefined;
  found.doubled = world.random.between(0.1, 0.9);
  return {
    what: `messages between ${controllers[at]?.process.name} and pods arrive twice`,
    end: () => {
      found.doubled = 0;
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
  doubledMessages,
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
