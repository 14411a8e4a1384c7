/**
 * Names of secrets that clients have thought up, under a wildcard or in capitals. There is no end to them, so each of these is bounded:
 *
 * - how many are kept: the oldest of the owner with the most make room for newcomers, so that a flood of one tenant's names leaves those of others alone;
 * - how many are answered per second, and no more than the client keeps up with: owners take turns, and whose turn it is does not stand behind many;
 * - how many wait for that: as many as are answered in a second. Whatever is too much is refused at once, again of the owner with the most.
 */

interface OwnNames {
  /** Each in the order of arrival. */
  readonly kept: Set<string>;
  readonly waiting: Set<string>;
}

/** Answered at once, before the client has said that it has taken one. */
const WINDOW = 64;

export class BorrowedNames {
  readonly #capacity: number;
  readonly #perSecond: number;
  readonly #owners: Map<string, OwnNames> = new Map();
  readonly #ownerOf: Map<string, string> = new Map();
  readonly #underWay: Set<string> = new Set();
  #waiting = 0;
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
    return this.#waiting > 0;
  }

  has(name: string): boolean {
    return this.#ownerOf.has(name);
  }

  isWaiting(name: string): boolean {
    return this.#of(name)?.waiting.has(name) === true;
  }

  names(): Iterable<string> {
    return this.#ownerOf.keys();
  }

  /** A name that the client has already. */
  keep(name: string, owner: string): void {
    this.delete(name);
    this.#join(name, owner).kept.add(name);
  }

  /** A name that has to wait for its turn. Returns what has to be refused for it, if anything: perhaps the name itself. */
  admit(name: string, owner: string): string | undefined {
    this.delete(name);
    this.#join(name, owner).waiting.add(name);
    this.#waiting++;
    if (this.#waiting <= this.#perSecond) return undefined;
    const refused = [...this.#largest("waiting")].at(-1);
    if (refused !== undefined) this.delete(refused);
    return refused;
  }

  delete(name: string): void {
    const owner = this.#ownerOf.get(name);
    const own = this.#of(name);
    if (owner === undefined || own === undefined) return;
    this.#ownerOf.delete(name);
    this.#underWay.delete(name);
    own.kept.delete(name);
    if (own.waiting.delete(name)) this.#waiting--;
    if (own.kept.size === 0 && own.waiting.size === 0) this.#owners.delete(owner);
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
    const mayGo = (): boolean => this.#tokens >= 1 && this.#underWay.size < WINDOW;
    while (this.#waiting > 0 && mayGo()) {
      for (const [owner, own] of [...this.#owners]) {
        const [name] = own.waiting;
        if (name === undefined) continue;
        if (!mayGo()) break;
        this.#tokens--;
        own.waiting.delete(name);
        this.#waiting--;
        own.kept.add(name);
        this.#underWay.add(name);
        due.push(name);
        // To the end of the queue.
        this.#owners.delete(owner);
        this.#owners.set(owner, own);
      }
    }
    return due;
  }

  /** Lets go of what is too much. */
  takeExcess(): readonly string[] {
    const excess: string[] = [];
    for (let over = this.#ownerOf.size - this.#waiting - this.#capacity; over > 0; over--) {
      const [oldest] = this.#largest("kept");
      if (oldest === undefined) break;
      this.delete(oldest);
      excess.push(oldest);
    }
    return excess;
  }

  #of(name: string): OwnNames | undefined {
    return this.#owners.get(this.#ownerOf.get(name) ?? "");
  }

  #join(name: string, owner: string): OwnNames {
    const own = this.#owners.get(owner) ?? { kept: new Set(), waiting: new Set() };
    this.#owners.set(owner, own);
    this.#ownerOf.set(name, owner);
    return own;
  }

  #largest(which: keyof OwnNames): ReadonlySet<string> {
    let largest: ReadonlySet<string> = new Set();
    for (const own of this.#owners.values()) if (own[which].size > largest.size) largest = own[which];
    return largest;
  }
}
