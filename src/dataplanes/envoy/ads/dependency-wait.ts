import type { Reference, XdsKind } from "./resource.ts";

interface Waiting {
  readonly since: number;
  /** By kind and name. */
  readonly resources: Map<string, Reference>;
}

/** Resources that wait until Envoy has answered for what they refer to, or for a time limit. */
export class DependencyWait {
  readonly #limitMs: number;
  /** By the resource that they wait for. */
  readonly #waiting: Map<string, Waiting> = new Map();
  /** Resources past the time limit; they are sent next, whatever is missing. */
  readonly #overdue: Set<string> = new Set();
  /** When a step was first put off. */
  readonly #putOff: Map<string, number> = new Map();

  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  get isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  *waiting(): Generator<Reference, void, undefined> {
    for (const { resources } of this.#waiting.values()) yield* resources.values();
  }

  isWaiting(wanted: (kind: XdsKind) => boolean): boolean {
    return this.waiting().some(({ kind }) => wanted(kind));
  }

  hold({ kind, name }: Reference, missing: Reference): void {
    const key = referenceKey(missing);
    const waiting = this.#waiting.get(key) ?? { since: performance.now(), resources: new Map() };
    this.#waiting.set(key, waiting);
    waiting.resources.set(referenceKey({ kind, name }), { kind, name });
  }

  /** Ends the wait for one resource. Returns those that waited for it. */
  release(missing: Reference): readonly Reference[] {
    const key = referenceKey(missing);
    const released = [...(this.#waiting.get(key)?.resources.values() ?? [])];
    this.#waiting.delete(key);
    return released;
  }

  /** Ends the waits that are past the time limit. Returns the resources that waited. */
  releaseOverdue(): readonly Reference[] {
    const limit = performance.now() - this.#limitMs;
    const released: Reference[] = [];
    for (const [key, { since, resources }] of this.#waiting) {
      if (since > limit) continue;
      this.#waiting.delete(key);
      for (const [waiting, reference] of resources) {
        this.#overdue.add(waiting);
        released.push(reference);
      }
    }
    return released;
  }

  /** Whether the resource is past the time limit. True only once. */
  takeOverdue(reference: Reference): boolean {
    return this.#overdue.delete(referenceKey(reference));
  }

  /** Whether a step must wait: there is a reason, and the time limit is not over. */
  putsOff(what: string, reason: boolean): boolean {
    if (!reason) {
      this.#putOff.delete(what);
      return false;
    }
    const since = this.#putOff.get(what) ?? performance.now();
    this.#putOff.set(what, since);
    if (performance.now() - since <= this.#limitMs) return true;
    this.#putOff.delete(what);
    return false;
  }
}

export function referenceKey({ kind, name }: Reference): string {
  return `${kind} ${name}`;
}
