/**
 * A log of refused connections: one line a minute for each peer and reason, however often the peer
 * connects. The metric counts them all.
 */
import type { StreamRefusal } from "../../dataplanes/remote/publisher/plan-server.ts";

const REPEAT_MS = 60_000;
const MOST_REMEMBERED = 1_000;

const TEXT: Readonly<Record<StreamRefusal["reason"], string>> = {
  token: "it showed no token",
  hello: "it did not say who it is",
  identity: "its token is not that of such a pod",
  elsewhere: "that pod is connected from another address",
  crowd: "too many peers have not said who they are",
};

export class RefusalLog {
  readonly #told: Map<string, number> = new Map();
  readonly #now: () => number;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** The line to log, or undefined where it was logged a moment ago. */
  line({ reason, peer, claim }: StreamRefusal): string | undefined {
    const id = `${reason} ${peer}`;
    const now = this.#now();
    const before = this.#told.get(id);
    if (before !== undefined && now - before < REPEAT_MS) return undefined;
    if (this.#told.size >= MOST_REMEMBERED) this.#told.clear();
    this.#told.set(id, now);
    const wanted =
      claim === undefined ? "a plan" : `the plan of Gateway ${claim.gateway} as pod ${claim.pod}`;
    return `a peer at ${peer} was refused ${wanted}: ${TEXT[reason]}`;
  }
}
