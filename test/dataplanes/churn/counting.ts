import type { Readable } from "node:stream";

/** Bytes that cannot be lost, doubled or swapped unnoticed: 32-bit numbers, one after the other. */
export class Counting {
  #next = 0;

  take(numbers: number): Buffer {
    const bytes = Buffer.alloc(numbers * 4);
    for (let at = 0; at < numbers; at++) bytes.writeUInt32BE(this.#next++, at * 4);
    return bytes;
  }

  get total(): number {
    return this.#next * 4;
  }
}

/** Reads what `Counting` wrote; says at which byte it went wrong. */
export class Recount {
  #bytes = 0;
  problem: string | undefined;

  constructor(stream?: Readable) {
    stream?.on("data", (chunk: Buffer) => this.add(chunk));
  }

  get total(): number {
    return this.#bytes;
  }

  add(chunk: Buffer): void {
    for (const byte of chunk) {
      const shift = 24 - 8 * (this.#bytes % 4);
      const wanted = (Math.floor(this.#bytes / 4) >>> shift) & 0xff;
      if (byte !== wanted) this.problem ??= `byte ${this.#bytes} is ${byte}, not ${wanted}`;
      this.#bytes++;
    }
  }
}
