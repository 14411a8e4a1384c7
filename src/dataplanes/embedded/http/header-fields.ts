/** Header fields in their order, as alternating names (lower case) and values: the form that node:http reads and writes fastest. */
export class HeaderFields {
  #fields: string[];

  constructor(fields: string[] = []) {
    this.#fields = fields;
  }

  /** From names in any case. */
  static fromRaw(raw: readonly string[]): HeaderFields {
    const fields = new Array<string>(raw.length);
    for (let at = 0; at + 1 < raw.length; at += 2) {
      fields[at] = (raw[at] as string).toLowerCase();
      fields[at + 1] = raw[at + 1] as string;
    }
    return new HeaderFields(fields);
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
    if (this.has(name)) this.removeAll((candidate) => candidate === name);
  }

  removeAll(unwanted: (name: string) => boolean): void {
    const kept: string[] = [];
    for (let at = 0; at < this.#fields.length; at += 2) {
      const name = this.#fields[at] as string;
      if (!unwanted(name)) kept.push(name, this.#fields[at + 1] as string);
    }
    this.#fields = kept;
  }

  *[Symbol.iterator](): Generator<readonly [string, string], void, undefined> {
    for (let at = 0; at < this.#fields.length; at += 2) {
      yield [this.#fields[at] as string, this.#fields[at + 1] as string];
    }
  }

  /** The form that node:http2 takes: repeated fields as lists. */
  toObject(): Record<string, string | string[]> {
    const object: Record<string, string | string[]> = Object.create(null);
    for (let at = 0; at < this.#fields.length; at += 2) {
      const name = this.#fields[at] as string;
      const value = this.#fields[at + 1] as string;
      const had = object[name];
      if (had === undefined) object[name] = value;
      else if (typeof had === "string") object[name] = [had, value];
      else had.push(value);
    }
    return object;
  }
}
