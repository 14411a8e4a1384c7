/** A controller as a process: the assembled one, over a simulated way to the API server. */
import { assembleController, type Controller } from "../../src/controller/assemble-controller.ts";
import type { PlanPublisher } from "../../src/dataplanes/remote/publisher/plan-publisher.ts";
import type { PlanItem } from "../../src/plan/plan.ts";
import type { StateView } from "../../src/status/metrics/state-snapshot.ts";
import { type ApiWeather, SimulatedClient } from "./api-client.ts";
import type { ApiServer } from "./api-server.ts";
import type { Stream } from "./plan-stream.ts";
import { referenceOf, simulatedOptions } from "./simulated-options.ts";
import { SimulatedProcess, type World } from "./world.ts";

export class SimulatedController {
  readonly process: SimulatedProcess;
  readonly client: SimulatedClient;
  readonly streams: Set<Stream> = new Set();
  readonly #world: World;
  readonly #controller: Controller;
  readonly #stop: AbortController = new AbortController();
  isLeading = false;
  /** What its metrics of the state are made of. */
  state: StateView | undefined;

  constructor(
    world: World,
    name: string,
    { server, weather }: { readonly server: ApiServer; readonly weather: ApiWeather },
  ) {
    this.#world = world;
    this.process = new SimulatedProcess(name);
    this.client = new SimulatedClient(world, this.process, { server, weather });
    const onLeading = (isLeading: boolean): void => {
      this.isLeading = isLeading;
      world.tell(name, isLeading ? "leads" : "leads no longer");
    };
    const options = simulatedOptions(name, onLeading, (view) => {
      this.state = view;
    });
    this.#controller = assembleController(options, {
      client: this.client,
      authority: "authority",
      drainToken: (uid) => `drain ${uid}`,
      referenceOf,
    });
    this.#tellPlan();
  }

  #tellPlan(): void {
    const { publisher } = this.#controller;
    const apply = publisher.apply.bind(publisher);
    publisher.apply = (delta) => {
      const isTold = ({ type }: PlanItem): boolean => type === "port" || type === "listener";
      const came = delta.upserts.filter(isTold).map(({ id }) => id);
      if (came.length > 0) this.#world.tell(this.process.name, `has in its plan: ${came.join(", ")}`);
      apply(delta);
    };
  }

  get publisher(): PlanPublisher {
    return this.#controller.publisher;
  }

  /** Whether it has seen this Gateway. */
  knows(gateway: string): boolean {
    return this.#controller.isSynced && this.#controller.names.find(`Gateway/${gateway}`) !== undefined;
  }

  start(): void {
    this.#world.tell(this.process.name, "starts");
    this.#world.after(0, () => void this.#controller.run(this.#stop.signal), this.process);
  }

  /** It is gone, in the middle of whatever it did. */
  kill(): void {
    this.#world.tell(this.process.name, this.isLeading ? "is killed while it leads" : "is killed");
    this.process.isAlive = false;
  }

  /**
   * The history is over. Signals that are never aborted are kept by Node with all that listens to
   * them.
   */
  discard(): void {
    this.#stop.abort();
  }

  /** It is asked to end, hands its lease back, and is gone. */
  stop(): void {
    this.#world.tell(this.process.name, this.isLeading ? "is told to end while it leads" : "is told to end");
    this.#world.after(0, () => this.#stop.abort(), this.process);
    this.#world.after(
      3_000,
      () => {
        this.process.isAlive = false;
      },
      this.process,
    );
  }
}
