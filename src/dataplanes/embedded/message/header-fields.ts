/**
 * Header fields in their order, as alternating names (lower case) and values: the form that is read
 * and written fastest.
 */
export class HeaderFields {
  readonly #fields: string[];

  constructor(fields: string[] = []) {
    this.#fields = fields;
  }

  get flat(): readonly string[] {
    return this.#fields;
  }

  get count(): number {
    return this.#fields.length / 2;
  }

  copy(): HeaderFields {
    return new HeaderFields(this.#fields.slice());
  }

  /** Several values joined, as one field would carry them. */
  get(name: string): string | undefined {
    const fields = this.#fields;
    let value: string | undefined;
    for (let at = 0; at < fields.length; at += 2) {
      if (fields[at] !== name) continue;
      value = value === undefined ? fields[at + 1] : `${value}, ${fields[at + 1]}`;
    }
    return value;
  }

  has(name: string): boolean {
    for (let at = 0; at < this.#fields.length; at += 2) if (this.#fields[at] === name) return true;
    return false;
  }

  add(name: string, value: string): void {
    this.#fields.push(name, value);
  }

  set(name: string, value: string): void {
    this.remove(name);
    this.#fields.push(name, value);
  }

  remove(name: string): void {
    const fields = this.#fields;
    let kept = 0;
    for (let at = 0; at < fields.length; at += 2) {
      if (fields[at] !== name) kept = move(fields, at, kept);
    }
    fields.length = kept;
  }

  removeAll(unwanted: (name: string) => boolean): void {
    const fields = this.#fields;
    let kept = 0;
    for (let at = 0; at < fields.length; at += 2) {
      if (!unwanted(fields[at] as string)) kept = move(fields, at, kept);
    }
    fields.length = kept;
  }

  /** A copy. */
  without(unwanted: (name: string) => boolean): HeaderFields {
    const fields = this.#fields;
    const kept: string[] = [];
    for (let at = 0; at < fields.length; at += 2) {
      const name = fields[at] as string;
      if (!unwanted(name)) kept.push(name, fields[at + 1] as string);
    }
    return new HeaderFields(kept);
  }

  *[Symbol.iterator](): Generator<readonly [string, string], void, undefined> {
    for (let at = 0; at < this.#fields.length; at += 2) {
      yield [this.#fields[at] as string, this.#fields[at + 1] as string];
    }
  }
}

/** One field to an earlier place; gives the place behind it. */
function move(fields: string[], from: number, to: number): number {
  if (from !== to) {
    fields[to] = fields[from] as string;
    fields[to + 1] = fields[from + 1] as string;
  }
  return to + 2;
}
