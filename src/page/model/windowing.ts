/** Which rows of a long list are in sight. Rows have heights of their own. */

/** The top of every row, and at the end the height of all. */
export function offsetsOf(count: number, heightOf: (index: number) => number): Float64Array {
  const offsets = new Float64Array(count + 1);
  for (let index = 0; index < count; index++) offsets[index + 1] = (offsets[index] ?? 0) + heightOf(index);
  return offsets;
}

/** The row at this height: the last one that begins at it or above. */
export function rowAt(offsets: Float64Array, height: number): number {
  let low = 0;
  let high = Math.max(0, offsets.length - 2);
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((offsets[middle] ?? 0) <= height) low = middle;
    else high = middle - 1;
  }
  return low;
}

export interface Span {
  readonly first: number;
  /** Not included. */
  readonly end: number;
}

/** Rows in sight, with some more on both sides, so that a scroll finds them drawn. */
export function spanInSight(
  offsets: Float64Array,
  { top, height, spare }: { readonly top: number; readonly height: number; readonly spare: number },
): Span {
  const count = offsets.length - 1;
  if (count <= 0) return { first: 0, end: 0 };
  return {
    first: Math.max(0, rowAt(offsets, top) - spare),
    end: Math.min(count, rowAt(offsets, top + height) + 1 + spare),
  };
}

/** Where to scroll so that a row is in sight; the same place when it already is. */
export function scrollFor(
  offsets: Float64Array,
  index: number,
  { top, height }: { readonly top: number; readonly height: number },
): number {
  const above = offsets[index] ?? 0;
  const below = offsets[index + 1] ?? above;
  if (above < top) return above;
  return below > top + height ? below - height : top;
}
