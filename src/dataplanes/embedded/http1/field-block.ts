/**
 * Header fields, read strictly (RFC 9112 5): `name: value`, the name a token with nothing between
 * it and the colon, no folded lines. The scanner has already refused control characters. Spaces
 * around a value are no part of it.
 */

const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const SPACE = 32;
const TAB = 9;
const KNOWN_NAMES = 1024;
const LONGEST_KNOWN_NAME = 64;

/**
 * Names as they were written → in lower case. Reading one of them again is a lookup, and comparing
 * it a comparison of pointers.
 */
const names = new Map<string, string>();

/**
 * Alternating names (lower case) and values; undefined if a line is not a field. `first` is the
 * first line that is one.
 */
export function readFields(
  text: string,
  lineEnds: readonly number[],
  first: number,
): readonly string[] | undefined {
  const fields: string[] = [];
  let at = first === 0 ? 0 : (lineEnds[first - 1] as number) + 2;
  for (let line = first; line < lineEnds.length; line++) {
    const end = lineEnds[line] as number;
    const colon = text.indexOf(":", at);
    if (colon < 0 || colon >= end) return undefined;
    const written = text.slice(at, colon);
    const name = names.get(written) ?? learnName(written);
    if (name === undefined) return undefined;
    let from = colon + 1;
    let to = end;
    while (from < to && isBlank(text.charCodeAt(from))) from++;
    while (to > from && isBlank(text.charCodeAt(to - 1))) to--;
    fields.push(name, text.slice(from, to));
    at = end + 2;
  }
  return fields;
}

export function isToken(text: string): boolean {
  return token.test(text);
}

function isBlank(code: number): boolean {
  return code === SPACE || code === TAB;
}

function learnName(written: string): string | undefined {
  if (!token.test(written)) return undefined;
  const lower = written.toLowerCase();
  if (written.length > LONGEST_KNOWN_NAME) return lower;
  if (names.size >= KNOWN_NAMES) names.clear();
  // A copy as a property's key: a slice would keep the whole head that it was cut from.
  const [own = lower] = Object.keys({ [Buffer.from(lower, "latin1").toString("latin1")]: true });
  names.set(Buffer.from(written, "latin1").toString("latin1"), own);
  return own;
}
