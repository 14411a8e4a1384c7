/**
 * Names of secrets that clients have thought up, under a wildcard or in capitals. There is no end
 * to them, so each of these is bounded:
 *
 * - how many are kept: the oldest of the owner with the most make room for newcomers, so that a
 *   flood of one tenant's names leaves those of others alone;
 * - how many are answered per second, and no more than the client keeps up with: owners take turns,
 *   and whose turn it is does not stand behind many;
 * - how many wait for that: as many as are answered in a second. Whatever is too much is refused at
 *   once, again of the owner with the most.
 */

/** Answered at once, before the client has said that it has taken one. */
const WINDOW = 64;

/** By owner, in the order of arrival; nobody has an empty set. */
type Names = Map<string, Set<string>>;

export class BorrowedNames {
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

  /** All of them, waiting or not. */
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

  /** A name that the client has already. */
  keep(name: string, owner: string): void {
    this.delete(name);
    this.#ownerOf.set(name, owner);
    join(this.#kept, owner, name);
  }

  /**
   * A name that has to wait for its turn. Returns what has to be refused for it, if anything:
   * perhaps the name itself.
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

  /** It had its turn, and the client has not answered yet. */
  isUnderWay(name: string): boolean {
    return this.#underWay.has(name);
  }

  /** The client has taken the name's secret, or refused it. */
  answered(name: string): void {
    this.#underWay.delete(name);
  }

  /** Names whose turn it is; they are kept from now on. */
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
      // The next turn is somebody else's.
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

  /** Lets go of what is too much. */
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
