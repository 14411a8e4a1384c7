/**
 * The stream between a pod and a controller, without HTTP/2: in order both ways, late, slow to
 * take, with some messages twice, reset at any moment, dead when nothing has come through for too
 * long. The pod's end opens it again, as ControllerLink does.
 */

import type {
  ControllerMessage,
  HelloMessage,
  PodMessage,
} from "../../src/dataplanes/remote/protocol/protocol.ts";
import type { Replica } from "../../src/dataplanes/remote/publisher/replica.ts";
import type { LinkEvents, PlanLink } from "../../src/dataplanes/remote/subscriber/plan-subscriber.ts";
import { Pipe } from "./pipe.ts";
import type { SimulatedController } from "./simulated-controller.ts";
import type { SimulatedProcess, World } from "./world.ts";

export interface StreamWeather {
  readonly delay: () => number;
  readonly isCut: () => boolean;
  readonly isDoubled: () => boolean;
}

export interface StreamTarget {
  readonly world: World;
  readonly pod: SimulatedProcess;
  readonly controller: SimulatedController;
  readonly hello: HelloMessage;
  readonly weather: StreamWeather;
}

const FIRST_RETRY_MS = 200;
const LAST_RETRY_MS = 10_000;
/** Two pings without an answer. */
const SILENCE_MS = 20_000;
const PING_MS = 10_000;
const CONNECT_MS = 30;
/** Messages on their way before a controller has to wait. */
const WINDOW = 4;

export class SimulatedLink implements PlanLink {
  readonly address: string;
  readonly #target: StreamTarget;
  readonly #events: LinkEvents;
  #delay = FIRST_RETRY_MS;
  #stream: Stream | undefined;
  #isClosed = false;

  constructor(target: StreamTarget, events: LinkEvents) {
    this.address = target.controller.process.name;
    this.#target = target;
    this.#events = events;
    this.#connect();
  }

  get isOpen(): boolean {
    return this.#stream !== undefined;
  }

  get protocol(): number {
    return 2;
  }

  send(message: PodMessage): void {
    this.#stream?.toController.send(message);
  }

  reset(): void {
    this.#stream?.end("the pod has left");
  }

  close(): void {
    this.#isClosed = true;
    this.reset();
  }

  #connect(): void {
    const { world, pod, controller, weather, hello } = this.#target;
    world.after(
      weather.delay() + CONNECT_MS,
      () => {
        if (this.#isClosed) return;
        if (weather.isCut() || !controller.process.isAlive || controller.process.isFrozen)
          return this.#retry("no connection");
        // A controller that does not know the Gateway yet does not know whose pod this is.
        if (!controller.knows(hello.gateway)) return this.#retry("the controller answered 403");
        this.#stream = new Stream(this.#target, {
          onMessage: (message) => this.#events.onMessage(message),
          onEnd: (reason) => {
            this.#stream = undefined;
            this.#retry(reason);
          },
        });
        this.#delay = FIRST_RETRY_MS;
        this.#events.onOpen();
      },
      pod,
    );
  }

  #retry(reason: string): void {
    if (this.#isClosed) return;
    this.#events.onClose(reason);
    const { world, pod } = this.#target;
    world.after(this.#delay * world.random.between(0.5, 1.5), () => this.#connect(), pod);
    this.#delay = Math.min(2 * this.#delay, LAST_RETRY_MS);
  }
}

interface StreamEnd {
  readonly onMessage: (message: ControllerMessage) => void;
  readonly onEnd: (reason: string) => void;
}

/** One connection, from its admission to its end. */
export class Stream {
  readonly toController: Pipe<PodMessage>;
  readonly #toPod: Pipe<ControllerMessage>;
  readonly #target: StreamTarget;
  readonly #podEnd: StreamEnd;
  readonly #replica: Replica;
  #isEnded = false;
  #isBlocked = false;

  constructor(target: StreamTarget, podEnd: StreamEnd) {
    const { world, pod, controller, hello, weather } = target;
    this.#target = target;
    this.#podEnd = podEnd;
    this.toController = new Pipe(world, {
      ...weather,
      to: controller.process,
      deliver: (message) => this.#hear(message),
    });
    this.#toPod = new Pipe(world, { ...weather, to: pod, deliver: (message) => this.#deliver(message) });
    const channel = {
      write: (message: ControllerMessage): boolean => {
        this.#toPod.send(message);
        this.#isBlocked = this.#toPod.underway >= WINDOW;
        return !this.#isBlocked;
      },
      close: (): void => this.end("the controller has ended the stream"),
    };
    this.#replica = controller.publisher.admit(channel, hello, pod.name);
    controller.streams.add(this);
    this.#watchOver();
  }

  /** Both ends learn of it, each when it gets that far; what was on its way is lost. */
  end(reason: string): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    const { world, pod, controller, weather } = this.#target;
    this.toController.end();
    this.#toPod.end();
    controller.streams.delete(this);
    world.after(weather.delay(), () => this.#podEnd.onEnd(reason), pod);
    world.after(weather.delay(), () => controller.publisher.dismiss(this.#replica), controller.process);
  }

  #hear(message: PodMessage): void {
    const { world, pod, controller } = this.#target;
    if (message.type === "report" && message.reports.length > 0) {
      const said = message.reports.map(({ id, state }) => `${id} ${state}`).join(", ");
      world.tell(controller.process.name, `hears from ${pod.name}: ${said}`);
    }
    if (!controller.publisher.take(this.#replica, copyOf(message))) this.end("the controller answered 400");
  }

  #deliver(message: ControllerMessage): void {
    this.#podEnd.onMessage(copyOf(message));
    if (!this.#isBlocked || this.#toPod.underway > 0) return;
    this.#isBlocked = false;
    const { world, controller } = this.#target;
    world.after(0, () => controller.publisher.drained(this.#replica), controller.process);
  }

  /** Pings: one that is not answered ends the connection. */
  #watchOver(): void {
    const { world, pod, controller, weather } = this.#target;
    let silent = 0;
    const look = (): void => {
      if (this.#isEnded) return;
      const isDead = !controller.process.isAlive || !pod.isAlive;
      const isStill = isDead || weather.isCut() || controller.process.isFrozen || pod.isFrozen;
      silent = isStill ? silent + PING_MS : 0;
      if (silent >= SILENCE_MS || isDead) this.end("no answer to pings");
      else world.outside(PING_MS, look);
    };
    world.outside(PING_MS, look);
  }
}

/** Nothing but text goes over a wire. */
function copyOf<M>(message: M): M {
  return JSON.parse(JSON.stringify(message)) as M;
}
