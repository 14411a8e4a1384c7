/** More than an API server ever stores in one object. */
const MAX_LINE = 32 * 1024 * 1024;
const NEWLINE = 10;

/** As JSON.parse; but what it cannot read, which may be of a Secret, is not quoted in its error. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new SyntaxError("this is no JSON");
  }
}

/**
 * The JSON values of a stream that has one a line, as they arrive: all complete ones of each chunk
 * together.
 */
export async function* jsonLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<readonly unknown[]> {
  let pending: Buffer[] = [];
  let size = 0;
  for await (const chunk of chunks) {
    const values: unknown[] = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      const rest = chunk.subarray(start, end);
      const line = pending.length === 0 ? rest : Buffer.concat([...pending, rest]);
      pending = [];
      size = 0;
      start = end + 1;
      if (line.length > 0) values.push(parseJson(line.toString("utf8")));
    }
    if (start < chunk.length) {
      pending.push(chunk.subarray(start));
      size += chunk.length - start;
      if (size > MAX_LINE) throw new Error(`a line of more than ${MAX_LINE} bytes`);
    }
    if (values.length > 0) yield values;
  }
}
