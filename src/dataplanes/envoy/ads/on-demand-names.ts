/**
 * On-demand names of secrets: Envoy asks for one secret per server name (SNI) that a client sends.
 * Under a wildcard listener, or with other capital letters, clients can make up any number of them.
 * So these are limited:
 *
 * - Names that are kept. The owner with the most names loses its oldest one to a new name, so that
 *   a flood of one tenant's names does not displace those of others.
 * - Names that are answered per second, and names without an ACK or NACK. Owners take turns, so
 *   that a flood of one owner's names does not delay those of others.
 * - Names that wait for their turn: as many as are answered in a second. Beyond that, the latest
 *   name of the owner with the most waiting names is rejected.
 */

/** The most names that are answered and have no ACK or NACK yet. */
const WINDOW = 64;

/** By owner, in the order of arrival. No owner has an empty set. */
type Names = Map<string, Set<string>>;

export class OnDemandNames {
  readonly #capacity: number;
  readonly #perSecond: number;
  readonly #ownerOf: Map<string, string> = new Map();
  readonly #kept: Names = new Map();
  /** Owners in the order of their turns. */
  readonly #waiting: Names = new Map();
  readonly #underWay: Set<string> = new Set();
  #waitingCount = 0;
  #tokens: number;
  #refilled: number = performance.now();

  constructor(capacity: number, perSecond: number) {
    this.#capacity = capacity;
    this.#perSecond = perSecond;
    this.#tokens = perSecond;
  }

  /** Names that are kept and names that wait. */
  get size(): number {
    return this.#ownerOf.size;
  }

  get hasWaiting(): boolean {
    return this.#waitingCount > 0;
  }

  has(name: string): boolean {
    return this.#ownerOf.has(name);
  }

  isWaiting(name: string): boolean {
    return this.#waiting.get(this.#ownerOf.get(name) ?? "")?.has(name) === true;
  }

  names(): Iterable<string> {
    return this.#ownerOf.keys();
  }

  /** Keeps a name whose secret Envoy has already. */
  keep(name: string, owner: string): void {
    this.delete(name);
    this.#ownerOf.set(name, owner);
    join(this.#kept, owner, name);
  }

  /**
   * Lets a name wait for its turn. Returns the name that must be rejected because too many wait, if
   * there is one. It can be the same name.
   */
  admit(name: string, owner: string): string | undefined {
    this.delete(name);
    this.#ownerOf.set(name, owner);
    join(this.#waiting, owner, name);
    this.#waitingCount++;
    if (this.#waitingCount <= this.#perSecond) return undefined;
    const refused = [...largest(this.#waiting)].at(-1);
    if (refused !== undefined) this.delete(refused);
    return refused;
  }

  delete(name: string): void {
    const owner = this.#ownerOf.get(name);
    if (owner === undefined) return;
    this.#ownerOf.delete(name);
    this.#underWay.delete(name);
    leave(this.#kept, owner, name);
    if (leave(this.#waiting, owner, name)) this.#waitingCount--;
  }

  /** The name had its turn, and Envoy has sent neither ACK nor NACK yet. */
  isUnderWay(name: string): boolean {
    return this.#underWay.has(name);
  }

  /** Envoy has sent an ACK or a NACK for the name's secret. */
  answered(name: string): void {
    this.#underWay.delete(name);
  }

  /** Returns the names whose turn it is. They are kept from now on. */
  takeDue(): readonly string[] {
    const now = performance.now();
    this.#tokens = Math.min(
      this.#perSecond,
      this.#tokens + ((now - this.#refilled) * this.#perSecond) / 1000,
    );
    this.#refilled = now;
    const due: string[] = [];
    while (this.#tokens >= 1 && this.#underWay.size < WINDOW) {
      const [turn] = this.#waiting;
      if (turn === undefined) break;
      const [owner, names] = turn;
      const [name] = names;
      // The next turn is another owner's.
      this.#waiting.delete(owner);
      this.#waiting.set(owner, names);
      if (name === undefined) break;
      this.#tokens--;
      this.keep(name, owner);
      this.#underWay.add(name);
      due.push(name);
    }
    return due;
  }

  /** Removes and returns the kept names beyond the capacity. */
  takeExcess(): readonly string[] {
    const excess: string[] = [];
    for (let over = this.#ownerOf.size - this.#waitingCount - this.#capacity; over > 0; over--) {
      const [oldest] = largest(this.#kept);
      if (oldest === undefined) break;
      this.delete(oldest);
      excess.push(oldest);
    }
    return excess;
  }
}

function join(all: Names, owner: string, name: string): void {
  const names = all.get(owner);
  if (names === undefined) all.set(owner, new Set([name]));
  else names.add(name);
}

/** Whether it was there. */
function leave(all: Names, owner: string, name: string): boolean {
  const names = all.get(owner);
  const was = names?.delete(name) === true;
  if (names?.size === 0) all.delete(owner);
  return was;
}

function largest(all: Names): ReadonlySet<string> {
  let found: ReadonlySet<string> = new Set();
  for (const names of all.values()) if (names.size > found.size) found = names;
  return found;
}
