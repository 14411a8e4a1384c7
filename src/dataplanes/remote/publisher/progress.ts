import type { Replica } from "./replica.ts";

export type ProgressStage = "sent" | "acknowledged";

interface Underway {
  readonly state: number;
  readonly since: number;
  readonly gateways: ReadonlySet<string>;
  isSent: boolean;
}

/** A limit, so that a pod that hangs costs no memory. `ReplicaLag` shows how far it is behind. */
const MOST_UNDERWAY = 1_000;

/**
 * Follows each change of the plan until all connected pods that it concerns have been sent it, and
 * have acknowledged it.
 */
export class Progress {
  readonly #replicas: (gateway: string) => Iterable<Replica>;
  readonly #tell: (stage: ProgressStage, seconds: number) => void;
  #underway: Underway[] = [];

  constructor(
    replicas: (gateway: string) => Iterable<Replica>,
    tell: (stage: ProgressStage, seconds: number) => void,
  ) {
    this.#replicas = replicas;
    this.#tell = tell;
  }

  /** The plan has changed for these Gateways; what caused it was seen at `since`. */
  begin(state: number, since: number, gateways: ReadonlySet<string>): void {
    if (this.#underway.length >= MOST_UNDERWAY) this.#underway.shift();
    // Without a connected pod there is nothing to measure.
    if ([...gateways].some((gateway) => this.#isServed(gateway)))
      this.#underway.push({ state, since, gateways, isSent: false });
    this.advance();
  }

  /** A pod was sent something, has acknowledged something, or has gone. */
  advance(): void {
    if (this.#underway.length === 0) return;
    const now = performance.now();
    this.#underway = this.#underway.filter((each) => {
      const replicas = [...each.gateways].flatMap((gateway) => [...this.#replicas(gateway)]);
      const seconds = (now - each.since) / 1000;
      if (!each.isSent && replicas.every(({ sent }) => sent >= each.state)) {
        each.isSent = true;
        if (replicas.some(({ isServed }) => isServed)) this.#tell("sent", seconds);
      }
      if (!each.isSent || !replicas.every(({ acknowledged }) => acknowledged >= each.state)) return true;
      if (replicas.some(({ isServed, acknowledges }) => isServed && acknowledges))
        this.#tell("acknowledged", seconds);
      return false;
    });
  }

  #isServed(gateway: string): boolean {
    for (const { isServed } of this.#replicas(gateway)) if (isServed) return true;
    return false;
  }
}
