import { readAuthorities, readKeyPair } from "../../../src/certificates/read.ts";
import { Engine } from "../../../src/engine/engine.ts";
import { DEFAULT_CONTROLLER, DEFAULT_PORT_RANGE } from "../../../src/engine/foundation/settings.ts";
import type { KubernetesClient } from "../../../src/kubernetes/client.ts";
import type { KubernetesObserver } from "../../../src/kubernetes/observer.ts";
import type { Installation } from "../../../src/sources/kubernetes/installation.ts";
import { KubernetesSource } from "../../../src/sources/kubernetes/source.ts";
import type { ResourceChange } from "../../../src/sources/source.ts";
import { announcer } from "../../../src/status/events/announcements.ts";
import { EventRecorder } from "../../../src/status/events/events.ts";
import { StatusWriter } from "../../../src/status/kubernetes/writer.ts";

/**
 * The control plane without data planes: source, engine, statuses and Events; every listener counts
 * as programmed.
 */
export interface TestController {
  readonly engine: Engine;
  readonly batches: readonly (readonly ResourceChange[])[];
  readonly writes: readonly string[];
  readonly fights: readonly string[];
  readonly log: readonly string[];
  readonly synced: Promise<void>;
  /** Begins to write, as the leader does; ends with the returned function. */
  lead(): () => Promise<void>;
  stop(): Promise<void>;
}

export interface ControllerOptions {
  readonly client: KubernetesClient;
  readonly namespaces?: readonly string[];
}

export function startController({ client, namespaces }: ControllerOptions): TestController {
  const abort = new AbortController();
  const controllerName = DEFAULT_CONTROLLER;
  const features = new Set(["Gateway", "HTTPRoute", "ListenerSet"]);
  const engine = new Engine({
    controllerName,
    adoptUnknownClasses: false,
    assumeProgrammed: true,
    features,
    portRange: DEFAULT_PORT_RANGE,
    maxListenersPerGateway: 0,
    readKeyPair,
    readAuthorities,
  });
  const batches: (readonly ResourceChange[])[] = [];
  const writes: string[] = [];
  const fights: string[] = [];
  const log: string[] = [];
  const seen: KubernetesObserver = {
    log: (level, message) => log.push(`${level} ${message}`),
  };
  let installed: Installation = { bundleVersions: [], channels: [], isKnown: false };
  const events = new EventRecorder({ client, controllerName, instance: "e2e", observer: seen });
  const announcing = announcer(events, (key) => writer.live(key));
  const writer: StatusWriter = new StatusWriter({
    client,
    controllerName,
    features: () => features,
    installed: () => installed,
    observer: seen,
    timing: { contestedMs: 200 },
    onWrite: (write) => {
      writes.push(write.key);
      announcing.onWrite(write);
    },
    onContested: (fight) => {
      fights.push(fight.key);
      announcing.onContested(fight);
    },
  });
  const source = new KubernetesSource({
    client,
    controllerName,
    ...(namespaces === undefined ? {} : { namespaces }),
    onInstallation: (installation) => {
      installed = installation;
      writer.reconsiderInstallation();
    },
    observer: seen,
  });
  const first = Promise.withResolvers<void>();
  const running = source.run((changes) => {
    batches.push(changes);
    writer.observe(changes);
    writer.judge(engine.apply(changes).verdicts);
    first.resolve();
  }, abort.signal);
  return {
    engine,
    batches,
    writes,
    fights,
    log,
    synced: first.promise,
    lead: () => {
      const leadership = new AbortController();
      const work = writer.run(leadership.signal);
      return async () => {
        leadership.abort();
        await work;
      };
    },
    stop: async () => {
      abort.abort();
      await running;
    },
  };
}
