/**
 * The Huffman code of HPACK (RFC 7541 5.2, appendix B).
 *
 * The code is canonical: it follows from the code lengths of all symbols. Codes of one length are
 * consecutive, in the order of their symbols, and each length continues where the shorter one
 * ended. The end-of-string symbol is thirty ones and comes last.
 */

/** The code length of each byte value, sixteen in a line. */
const lengths: readonly number[] = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28,
  28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7,
  8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19,
  13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13,
  28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21,
  22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23,
  22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
  19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25,
  25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];
const END_OF_STRING = 256;
const END_OF_STRING_BITS = 30;

const codeLengths: Uint8Array = Uint8Array.from(lengths);
const codes: Uint32Array = canonicalCodes();

/**
 * The transitions of the decoder for four bits. Its state is an inner node of the code's tree. Four
 * bits give at most one symbol, because the shortest code has five. An entry has the next state,
 * the symbol, whether there is one, and whether the bits are invalid.
 */
const STEP_SYMBOL_SHIFT = 8;
const STEP_HAS_SYMBOL = 1 << 16;
const STEP_FAILS = 1 << 17;
const { steps, mayEndIn } = decodingSteps();

/** Enough for the longest string: a whole header block of shortest codes. */
let scratch: Buffer = Buffer.allocUnsafeSlow(16 * 1024);

/** Undefined if the bytes are not valid. */
export function decodeHuffman(bytes: Uint8Array, start: number, end: number): string | undefined {
  const most = Math.ceil(((end - start) * 8) / 5);
  if (scratch.length < most) scratch = Buffer.allocUnsafeSlow(most * 2);
  const out = scratch;
  let length = 0;
  let state = 0;
  for (let at = start; at < end; at++) {
    const byte = bytes[at] as number;
    let step = steps[(state << 4) | (byte >> 4)] as number;
    if ((step & STEP_HAS_SYMBOL) !== 0) out[length++] = step >> STEP_SYMBOL_SHIFT;
    let failed = step & STEP_FAILS;
    step = steps[((step & 0xff) << 4) | (byte & 15)] as number;
    if ((step & STEP_HAS_SYMBOL) !== 0) out[length++] = step >> STEP_SYMBOL_SHIFT;
    failed |= step & STEP_FAILS;
    if (failed !== 0) return undefined;
    state = step & 0xff;
  }
  return mayEndIn[state] === 1 ? out.toString("latin1", 0, length) : undefined;
}

/** The length of the encoded text in bytes, with padding. */
export function huffmanLength(text: string): number {
  let bits = 0;
  for (let at = 0; at < text.length; at++) bits += codeLengths[text.charCodeAt(at) & 0xff] as number;
  return (bits + 7) >> 3;
}

/** Writes the codes of a Latin-1 text and returns where they end. */
export function encodeHuffman(text: string, out: Uint8Array, at: number): number {
  let end = at;
  let bits = 0;
  let pending = 0;
  for (let i = 0; i < text.length; i++) {
    const char = text.charCodeAt(i) & 0xff;
    let left = codeLengths[char] as number;
    const code = codes[char] as number;
    // In two parts: bit operations have 32 bits.
    while (left > 0) {
      const take = Math.min(left, 8 - pending);
      bits = ((bits << take) | ((code >>> (left - take)) & ((1 << take) - 1))) & 0xff;
      pending += take;
      left -= take;
      if (pending === 8) {
        out[end++] = bits;
        bits = 0;
        pending = 0;
      }
    }
  }
  if (pending > 0) out[end++] = ((bits << (8 - pending)) | ((1 << (8 - pending)) - 1)) & 0xff;
  return end;
}

function canonicalCodes(): Uint32Array {
  const result = new Uint32Array(END_OF_STRING + 1);
  let next = 0;
  for (let bits = 1; bits <= END_OF_STRING_BITS; bits++) {
    for (let symbol = 0; symbol < END_OF_STRING; symbol++) {
      if (codeLengths[symbol] === bits) result[symbol] = next++;
    }
    if (bits === END_OF_STRING_BITS) result[END_OF_STRING] = next;
    next *= 2;
  }
  return result;
}

function decodingSteps(): { readonly steps: Uint32Array; readonly mayEndIn: Uint8Array } {
  // Children of inner nodes: another inner node, or a symbol as its negative minus one.
  const tree: (number | undefined)[] = [undefined, undefined];
  for (let symbol = 0; symbol <= END_OF_STRING; symbol++) {
    const bits = symbol === END_OF_STRING ? END_OF_STRING_BITS : (codeLengths[symbol] as number);
    const code = codes[symbol] as number;
    let node = 0;
    for (let bit = bits - 1; bit >= 0; bit--) {
      const slot = node * 2 + ((code >>> bit) & 1);
      if (bit === 0) tree[slot] = -symbol - 1;
      else {
        if (tree[slot] === undefined) {
          tree[slot] = tree.length / 2;
          tree.push(undefined, undefined);
        }
        node = tree[slot] as number;
      }
    }
  }
  const states = tree.length / 2;
  const table = new Uint32Array(states * 16);
  for (let state = 0; state < states; state++) {
    for (let nibble = 0; nibble < 16; nibble++) table[state * 16 + nibble] = stepFrom(tree, state, nibble);
  }
  // Padding is a prefix of the end-of-string code, and shorter than a byte.
  const ends = new Uint8Array(states);
  for (let node = 0, depth = 0; depth < 8; depth++) {
    ends[node] = 1;
    node = tree[node * 2 + 1] as number;
  }
  return { steps: table, mayEndIn: ends };
}

function stepFrom(tree: readonly (number | undefined)[], state: number, nibble: number): number {
  let node = state;
  let emitted = 0;
  for (let bit = 3; bit >= 0; bit--) {
    const child = tree[node * 2 + ((nibble >> bit) & 1)] as number;
    if (child === -END_OF_STRING - 1) return STEP_FAILS;
    if (child < 0) {
      emitted = STEP_HAS_SYMBOL | ((-child - 1) << STEP_SYMBOL_SHIFT);
      node = 0;
    } else node = child;
  }
  return emitted | node;
}
