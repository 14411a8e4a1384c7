/**
 * Protocol Buffers, as much as it takes to write configuration and to read requests: a message is
 * its bytes, a field is a tag and its bytes. Absent values and defaults write nothing, as proto3
 * wants it; where a default must be seen on the wire there is an `explicit` form.
 */

export type Message = Uint8Array;
export type Field = Uint8Array | undefined;

const VARINT = 0;
const DOUBLE = 1;
const BYTES = 2;

export function message(...fields: readonly (Field | readonly Field[])[]): Message {
  const parts: Uint8Array[] = [];
  for (const field of fields) {
    if (field === undefined) continue;
    if (field instanceof Uint8Array) parts.push(field);
    else for (const each of field) if (each !== undefined) parts.push(each);
  }
  return parts.length === 1 ? (parts[0] as Uint8Array) : Buffer.concat(parts);
}

export function text(number: number, value: string | undefined): Field {
  return value === undefined || value === "" ? undefined : explicitText(number, value);
}

export function explicitText(number: number, value: string): Field {
  return lengthDelimited(number, Buffer.from(value, "utf8"));
}

export function texts(number: number, values: readonly string[]): readonly Field[] {
  return values.map((value) => explicitText(number, value));
}

/** Also of enums. */
export function uint(number: number, value: number | undefined): Field {
  return value === undefined || value === 0 ? undefined : explicitUint(number, value);
}

export function explicitUint(number: number, value: number): Field {
  return Buffer.from([...varint(number * 8 + VARINT), ...varint(value)]);
}

export function flag(number: number, value: boolean | undefined): Field {
  return value === true ? explicitUint(number, 1) : undefined;
}

export function double(number: number, value: number): Field {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(value);
  return Buffer.concat([Buffer.from(varint(number * 8 + DOUBLE)), bytes]);
}

/** A message in a field, or bytes. */
export function nested(number: number, value: Message | undefined): Field {
  return value === undefined ? undefined : lengthDelimited(number, value);
}

export function nestedEach(number: number, values: readonly Message[]): readonly Field[] {
  return values.map((value) => lengthDelimited(number, value));
}

export function map(number: number, entries: Iterable<readonly [string, Message]>): readonly Field[] {
  return [...entries].map(([key, value]) => nested(number, message(text(1, key), nested(2, value))));
}

function lengthDelimited(number: number, value: Uint8Array): Uint8Array {
  const head = [...varint(number * 8 + BYTES), ...varint(value.length)];
  const bytes = Buffer.allocUnsafe(head.length + value.length);
  bytes.set(head);
  bytes.set(value, head.length);
  return bytes;
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  while (rest >= 0x80) {
    bytes.push((rest % 0x80) | 0x80);
    rest = Math.floor(rest / 0x80);
  }
  bytes.push(rest);
  return bytes;
}

/**
 * The fields of a message by number, in order of arrival; numbers are kept as numbers, the rest as
 * bytes.
 */
export interface Reader {
  text(number: number): string;
  texts(number: number): readonly string[];
  uint(number: number): number;
  message(number: number): Reader | undefined;
  messages(number: number): readonly Reader[];
}

export function read(bytes: Uint8Array): Reader {
  const fields = parse(bytes);
  const last = (number: number): number | Uint8Array | undefined => fields.get(number)?.at(-1);
  const asText = (value: number | Uint8Array | undefined): string =>
    value instanceof Uint8Array
      ? Buffer.from(value.buffer, value.byteOffset, value.length).toString("utf8")
      : "";
  return {
    text: (number) => asText(last(number)),
    texts: (number) => (fields.get(number) ?? []).map(asText),
    uint: (number) => {
      const value = last(number);
      return typeof value === "number" ? value : 0;
    },
    message: (number) => {
      const value = last(number);
      return value instanceof Uint8Array ? read(value) : undefined;
    },
    messages: (number) =>
      (fields.get(number) ?? []).filter((value) => value instanceof Uint8Array).map((value) => read(value)),
  };
}

function parse(bytes: Uint8Array): Map<number, (number | Uint8Array)[]> {
  const fields = new Map<number, (number | Uint8Array)[]>();
  let at = 0;
  const next = (): number => {
    let value = 0;
    let factor = 1;
    for (let count = 0; count < 10; count++) {
      const byte = bytes[at++];
      if (byte === undefined) throw new RangeError("a protobuf message ends within a number");
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
      factor *= 0x80;
    }
    throw new RangeError("a protobuf number is too long");
  };
  while (at < bytes.length) {
    const tag = next();
    const number = Math.floor(tag / 8);
    const values = fields.get(number) ?? [];
    fields.set(number, values);
    const type = tag % 8;
    if (type === VARINT) {
      values.push(next());
      continue;
    }
    const length = type === BYTES ? next() : type === DOUBLE ? 8 : type === 5 ? 4 : -1;
    if (length < 0 || at + length > bytes.length) throw new RangeError("a protobuf field is malformed");
    values.push(bytes.subarray(at, at + length));
    at += length;
  }
  return fields;
}
