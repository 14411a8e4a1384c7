/**
 * A cache of encoded header fields, one per thread, because the same few are sent again and again.
 * Cached names and values have been checked and can be sent as they are.
 *
 * The number of names, and of values per name, is limited. For a name whose values keep changing,
 * no values are cached.
 */

import { fieldSize, isConnectionSpecific, isFieldName, isFieldValue } from "./field.ts";
import { encodeHuffman, huffmanLength } from "./huffman.ts";
import { staticIndex, staticNameIndex } from "./static-table.ts";

const MAX_NAMES = 1_024;
const MAX_VALUES = 128;
const MAX_KEPT_VALUE = 512;
const MAX_OVERFLOWS = 3;

export interface FieldEncoding {
  /** The index of name and value in the static table; 0 if they are not there. */
  readonly staticIndex: number;
  /** The literal that enters the dynamic table, and the one that does not. */
  readonly indexing: Uint8Array;
  readonly plain: Uint8Array;
  readonly size: number;
  /** Seen more than once: enters dynamic tables. */
  repeated: boolean;
}

export interface NameEncoding {
  readonly name: string;
  /** The beginning of a literal that enters no table. */
  readonly prefix: Uint8Array;
  readonly values: Map<string, FieldEncoding> | undefined;
  overflows: number;
}

/** Names whose values differ in nearly every message. */
const volatile: ReadonlySet<string> = new Set([
  ":path",
  "content-length",
  "date",
  "etag",
  "if-modified-since",
  "if-none-match",
  "last-modified",
  "location",
  "referer",
  "traceparent",
  "x-request-id",
]);

/** Secret values: compression must not help to guess them (RFC 7541, 7.1.3). */
const sensitive: ReadonlySet<string> = new Set([
  "authorization",
  "cookie",
  "proxy-authorization",
  "set-cookie",
]);

export class FieldEncodings {
  readonly #names: Map<string, NameEncoding> = new Map();

  /** Throws if the name is not valid in HTTP/2. */
  name(name: string): NameEncoding {
    return this.#names.get(name) ?? this.#addName(name, volatile.has(name), sensitive.has(name));
  }

  /** Undefined if the value is not cached. Throws if it cannot be sent. */
  field(name: NameEncoding, value: string): FieldEncoding | undefined {
    const { values } = name;
    if (values === undefined) {
      checkValue(name.name, value);
      return undefined;
    }
    const known = values.get(value);
    if (known !== undefined) {
      known.repeated = true;
      return known;
    }
    checkValue(name.name, value);
    if (value.length > MAX_KEPT_VALUE) return undefined;
    if (values.size >= MAX_VALUES) {
      values.clear();
      if (++name.overflows > MAX_OVERFLOWS) {
        this.#addName(name.name, true, false);
        return undefined;
      }
    }
    const encoding = encode(name.name, value);
    values.set(value, encoding);
    return encoding;
  }

  /**
   * A sender has marked this field as never indexed. Names of the static table are exempt: one
   * sender must not decide how fields of all others are encoded.
   */
  neverIndex(name: string): void {
    if (staticNameIndex(name) === 0 && isFieldName(name)) this.#addName(name, true, true);
  }

  #addName(name: string, changing: boolean, secret: boolean): NameEncoding {
    if (name.charCodeAt(0) !== 58 && (!isFieldName(name) || isConnectionSpecific(name))) {
      throw new TypeError("HTTP/2 has no such field name");
    }
    if (this.#names.size >= MAX_NAMES) this.#names.clear();
    const encoding: NameEncoding = {
      name,
      prefix: literalPrefix(name, secret ? 0x10 : 0),
      values: changing || secret ? undefined : new Map(),
      overflows: 0,
    };
    this.#names.set(name, encoding);
    return encoding;
  }
}

function checkValue(name: string, value: string): void {
  if (!isFieldValue(value)) throw new TypeError(`the value of ${name} cannot be sent`);
}

function encode(name: string, value: string): FieldEncoding {
  const text = encodeString(value);
  return {
    staticIndex: staticIndex(name, value),
    indexing: joined(literalPrefix(name, 0x40), text),
    plain: joined(literalPrefix(name, 0), text),
    size: fieldSize(name, value),
    repeated: false,
  };
}

/**
 * `pattern` is 0x40 for a field that enters the table, 0 for one that does not, 0x10 for one that
 * never may.
 */
function literalPrefix(name: string, pattern: 0x40 | 0 | 0x10): Uint8Array {
  const bytes: number[] = [];
  const index = staticNameIndex(name);
  writeInteger(bytes, pattern, pattern === 0x40 ? 0x3f : 0x0f, index);
  return index > 0 ? Uint8Array.from(bytes) : joined(Uint8Array.from(bytes), encodeString(name));
}

function encodeString(text: string): Uint8Array {
  const short = huffmanLength(text);
  const bytes: number[] = [];
  if (short < text.length) {
    writeInteger(bytes, 0x80, 0x7f, short);
    const out = new Uint8Array(bytes.length + short);
    out.set(bytes);
    encodeHuffman(text, out, bytes.length);
    return out;
  }
  writeInteger(bytes, 0, 0x7f, text.length);
  return joined(Uint8Array.from(bytes), Buffer.from(text, "latin1"));
}

function writeInteger(out: number[], pattern: number, mask: number, value: number): void {
  if (value < mask) {
    out.push(pattern | value);
    return;
  }
  out.push(pattern | mask);
  let rest = value - mask;
  for (; rest >= 128; rest >>>= 7) out.push((rest & 127) | 128);
  out.push(rest);
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  const both = new Uint8Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}
