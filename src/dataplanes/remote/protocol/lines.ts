import type { Readable } from "node:stream";

export class LineTooLong extends Error {}

/**
 * The lines of a stream of JSON, one by one. Throws when a line is longer than the limit, which may
 * change from line to line.
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
