/**
 * Names of header fields, and what a backend that turns names into variables could take for them:
 * `X_User` and `X.User` for `X-User`.
 */
export class Twins {
  readonly #folded: ReadonlySet<string>;

  constructor(names: Iterable<string>) {
    this.#folded = new Set([...names].map(fold));
  }

  has(name: string): boolean {
    return this.#folded.size > 0 && this.#folded.has(fold(name));
  }
}

function fold(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]/g, "-");
}
