import type { Readable } from "node:stream";

export class LineTooLong extends Error {}

/**
 * Lines of a stream of JSON, each handed over whole. A peer that never ends a line is cut off at
 * the limit of the moment.
 */
export async function* readLines(stream: Readable, limit: () => number): AsyncGenerator<string> {
  let pending: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    let start = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      pending.push(chunk.subarray(start, end));
      yield Buffer.concat(pending).toString("utf8");
      pending = [];
      size = 0;
      start = end + 1;
    }
    if (start < chunk.length) {
      pending.push(chunk.subarray(start));
      size += chunk.length - start;
      if (size > limit()) throw new LineTooLong(`a line is longer than ${limit()} bytes`);
    }
  }
}
