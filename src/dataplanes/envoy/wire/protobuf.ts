/**
 * Protocol Buffers, as much as it takes to write configuration and to read requests: a message is
 * its bytes, a field is a tag and its bytes. Absent values and defaults write nothing, as proto3
 * wants it; where a default must be seen on the wire there is an `explicit` form.
 *
 * Fields are named by proto.ts. To the compiler a field belongs to its message and takes values of
 * its type; when the program runs, it is its number.
 */

declare const TYPE: unique symbol;
declare const OWNER: unique symbol;
declare const VALUE: unique symbol;
declare const REPEATED: unique symbol;

/** The bytes of a message; `Type` is its full name. */
export type Message<Type extends string = string> = Uint8Array & { readonly [TYPE]: Type };
/** Bytes that stand in a message of the type `Owner`; undefined: none. */
export type EncodedField<Owner extends string = string> =
  | (Uint8Array & { readonly [OWNER]: Owner })
  | undefined;

interface FieldOf<Owner extends string, Value> {
  readonly [OWNER]: Owner;
  readonly [VALUE]: Value;
}
export type TextField<Owner extends string> = number & FieldOf<Owner, "text">;
export type BytesField<Owner extends string> = number & FieldOf<Owner, "bytes">;
export type UintField<Owner extends string> = number & FieldOf<Owner, "uint">;
export type FlagField<Owner extends string> = number & FieldOf<Owner, "flag">;
export type DoubleField<Owner extends string> = number & FieldOf<Owner, "double">;
export type EnumField<Owner extends string, Enum extends string> = number & FieldOf<Owner, EnumValue<Enum>>;
export type EnumValue<Enum extends string> = number & { readonly [TYPE]: Enum };
export type NestedField<Owner extends string, Type extends string> = number & FieldOf<Owner, Message<Type>>;
/** A map from texts to messages. */
export type MapField<Owner extends string, Type extends string> = number & FieldOf<Owner, readonly [Type]>;
export type TextMapField<Owner extends string> = number & FieldOf<Owner, readonly ["text"]>;
export type Repeated<One extends number> = One & { readonly [REPEATED]: true };

const VARINT = 0;
const DOUBLE = 1;
const BYTES = 2;
/** Of an entry of a map. */
const KEY = 1;
const ENTRY_VALUE = 2;

export function message<Type extends string>(
  ...fields: readonly (EncodedField<Type> | readonly EncodedField<Type>[])[]
): Message<Type> {
  const parts: Uint8Array[] = [];
  for (const field of fields) {
    if (field === undefined) continue;
    if (field instanceof Uint8Array) parts.push(field);
    else for (const each of field) if (each !== undefined) parts.push(each);
  }
  return (parts.length === 1 ? parts[0] : Buffer.concat(parts)) as Message<Type>;
}

export function text<Owner extends string>(
  field: TextField<Owner>,
  value: string | undefined,
): EncodedField<Owner> {
  return value === undefined || value === "" ? undefined : explicitText(field, value);
}

export function explicitText<Owner extends string>(
  field: TextField<Owner>,
  value: string,
): EncodedField<Owner> {
  return lengthDelimited(field, Buffer.from(value, "utf8"));
}

export function texts<Owner extends string>(
  field: Repeated<TextField<Owner>>,
  values: readonly string[],
): readonly EncodedField<Owner>[] {
  return values.map((value) => explicitText(field, value));
}

export function bytes<Owner extends string>(
  field: BytesField<Owner>,
  value: Uint8Array,
): EncodedField<Owner> {
  return lengthDelimited(field, value);
}

export function uint<Owner extends string>(
  field: UintField<Owner>,
  value: number | undefined,
): EncodedField<Owner> {
  return value === undefined || value === 0 ? undefined : explicitUint(field, value);
}

export function explicitUint<Owner extends string>(
  field: UintField<Owner>,
  value: number,
): EncodedField<Owner> {
  return number(field, value);
}

export function enumValue<Owner extends string, Enum extends string>(
  field: EnumField<Owner, Enum>,
  value: EnumValue<Enum> | undefined,
): EncodedField<Owner> {
  return value === undefined || value === 0 ? undefined : number(field, value);
}

export function flag<Owner extends string>(
  field: FlagField<Owner>,
  value: boolean | undefined,
): EncodedField<Owner> {
  return value === true ? number(field, 1) : undefined;
}

export function double<Owner extends string>(field: DoubleField<Owner>, value: number): EncodedField<Owner> {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleLE(value);
  return Buffer.concat([Buffer.from(varint(field * 8 + DOUBLE)), bytes]) as Uint8Array as EncodedField<Owner>;
}

export function nested<Owner extends string, Type extends string>(
  field: NestedField<Owner, Type>,
  value: Message<Type> | undefined,
): EncodedField<Owner> {
  return value === undefined ? undefined : lengthDelimited(field, value);
}

export function nestedEach<Owner extends string, Type extends string>(
  field: Repeated<NestedField<Owner, Type>>,
  values: readonly Message<Type>[],
): readonly EncodedField<Owner>[] {
  return values.map((value) => lengthDelimited(field, value));
}

export function map<Owner extends string, Type extends string>(
  field: MapField<Owner, Type>,
  entries: Iterable<readonly [string, Message<Type>]>,
): readonly EncodedField<Owner>[] {
  return Array.from(entries, ([key, value]) => {
    const name = key === "" ? [] : [lengthDelimited(KEY, Buffer.from(key, "utf8"))];
    return lengthDelimited(field, Buffer.concat([...name, lengthDelimited(ENTRY_VALUE, value)]));
  });
}

export function textMap<Owner extends string>(
  field: TextMapField<Owner>,
  entries: Iterable<readonly [string, string]>,
): readonly EncodedField<Owner>[] {
  return Array.from(entries, ([key, value]) => {
    const parts = [lengthDelimited(KEY, Buffer.from(key)), lengthDelimited(ENTRY_VALUE, Buffer.from(value))];
    return lengthDelimited(field, Buffer.concat(parts));
  });
}

function number<Owner extends string>(field: number, value: number): EncodedField<Owner> {
  return Buffer.from([...varint(field * 8 + VARINT), ...varint(value)]) as Uint8Array as EncodedField<Owner>;
}

function lengthDelimited<Owner extends string>(
  field: number,
  value: Uint8Array,
): NonNullable<EncodedField<Owner>> {
  const head = [...varint(field * 8 + BYTES), ...varint(value.length)];
  const bytes = Buffer.allocUnsafe(head.length + value.length);
  bytes.set(head);
  bytes.set(value, head.length);
  return bytes as Uint8Array as NonNullable<EncodedField<Owner>>;
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
 * The fields of a message, in order of arrival; numbers are kept as numbers, the rest as bytes.
 */
export interface Reader<Type extends string> {
  text(field: TextField<Type>): string;
  texts(field: Repeated<TextField<Type>>): readonly string[];
  uint(field: UintField<Type> | EnumField<Type, string>): number;
  flag(field: FlagField<Type>): boolean;
  bytes(field: BytesField<Type>): Uint8Array | undefined;
  message<Inner extends string>(field: NestedField<Type, Inner>): Reader<Inner> | undefined;
  messages<Inner extends string>(field: Repeated<NestedField<Type, Inner>>): readonly Reader<Inner>[];
  textMap(field: TextMapField<Type>): ReadonlyMap<string, string>;
}

export function read<Type extends string>(bytes: Uint8Array): Reader<Type> {
  const fields = parse(bytes);
  const last = (field: number): number | Uint8Array | undefined => fields.get(field)?.at(-1);
  const all = (field: number): readonly Uint8Array[] =>
    (fields.get(field) ?? []).filter((value) => value instanceof Uint8Array);
  return {
    text: (field) => asText(last(field)),
    texts: (field) => (fields.get(field) ?? []).map(asText),
    uint: (field) => {
      const value = last(field);
      return typeof value === "number" ? value : 0;
    },
    flag: (field) => Boolean(last(field)),
    bytes: (field) => {
      const value = last(field);
      return value instanceof Uint8Array ? value : undefined;
    },
    message: (field) => {
      const value = last(field);
      return value instanceof Uint8Array ? read(value) : undefined;
    },
    messages: (field) => all(field).map((value) => read(value)),
    textMap: (field) =>
      new Map(
        all(field).map((value) => {
          const entry = parse(value);
          return [asText(entry.get(KEY)?.at(-1)), asText(entry.get(ENTRY_VALUE)?.at(-1))];
        }),
      ),
  };
}

function asText(value: number | Uint8Array | undefined): string {
  return value instanceof Uint8Array
    ? Buffer.from(value.buffer, value.byteOffset, value.length).toString("utf8")
    : "";
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
