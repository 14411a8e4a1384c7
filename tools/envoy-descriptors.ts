/**
 * Envoy's message types, read out of its program. Every program with the C++ runtime of Protocol
 * Buffers contains the descriptors of its .proto files (FileDescriptorProto of
 * google/protobuf/descriptor.proto), so these are of exactly the version that is run.
 */
import { readFileSync } from "node:fs";

export interface MessageType {
  /** With its package: envoy.config.cluster.v3.Cluster. */
  readonly name: string;
  readonly fields: readonly MessageField[];
  /** Of a map: an entry has a key (1) and a value (2). */
  readonly isMapEntry: boolean;
}

export interface MessageField {
  /** As in the .proto file: connect_timeout. */
  readonly name: string;
  readonly number: number;
  readonly isRepeated: boolean;
  /** FieldDescriptorProto.Type. */
  readonly type: number;
  /** Of a message or an enum, with its package. */
  readonly typeName: string;
}

export interface EnumType {
  readonly name: string;
  readonly values: ReadonlyMap<string, number>;
}

export interface Descriptors {
  readonly messages: ReadonlyMap<string, MessageType>;
  readonly enums: ReadonlyMap<string, EnumType>;
}

const LENGTH_DELIMITED = 2;
const VARINT = 0;
const FIXED_SIZES: ReadonlyMap<number, number> = new Map([
  [1, 8],
  [5, 4],
]);
const REPEATED = 3;
/** The highest field of FileDescriptorProto. */
const LAST_FIELD_OF_FILE = 14;
const ENDING = Buffer.from(".proto\x12");
const LONGEST_NAME = 127;

/** One field of a serialized message, whose number may be of anything. */
interface Part {
  readonly number: number;
  readonly value: number | Buffer;
  readonly end: number;
}

export function descriptorsOf(program: string): Descriptors {
  const bytes = readFileSync(program);
  const messages = new Map<string, MessageType>();
  const enums = new Map<string, EnumType>();
  for (const file of filesIn(bytes)) {
    const scope = textOf(file, 2);
    for (const each of messagesOf(file, 4)) addMessage(each, scope);
    for (const each of messagesOf(file, 5)) addEnum(each, scope);
  }
  return { messages, enums };

  function addMessage(parts: readonly Part[], scope: string): void {
    const name = `${scope}.${textOf(parts, 1)}`;
    const isMapEntry = messagesOf(parts, 7).some((options) => numberOf(options, 7) === 1);
    messages.set(name, { name, isMapEntry, fields: messagesOf(parts, 2).map(fieldOf) });
    for (const each of messagesOf(parts, 3)) addMessage(each, name);
    for (const each of messagesOf(parts, 4)) addEnum(each, name);
  }

  function addEnum(parts: readonly Part[], scope: string): void {
    const name = `${scope}.${textOf(parts, 1)}`;
    const values = messagesOf(parts, 2).map((value) => [textOf(value, 1), numberOf(value, 2)] as const);
    enums.set(name, { name, values: new Map(values) });
  }
}

function fieldOf(parts: readonly Part[]): MessageField {
  return {
    name: textOf(parts, 1),
    number: numberOf(parts, 3),
    isRepeated: numberOf(parts, 4) === REPEATED,
    type: numberOf(parts, 5),
    typeName: textOf(parts, 6).slice(1),
  };
}

/** A serialized file begins with its name and its package; its fields are in order. */
function* filesIn(bytes: Buffer): Iterable<readonly Part[]> {
  for (let at = bytes.indexOf(ENDING); at >= 0; at = bytes.indexOf(ENDING, at + 1)) {
    const end = at + ENDING.length - 1;
    const length = Array.from({ length: LONGEST_NAME }, (_, index) => index + 1).find(
      (length) => bytes[end - length - 1] === length && bytes[end - length - 2] === 0x0a,
    );
    if (length === undefined) continue;
    const parts: Part[] = [];
    for (let next = partAt(bytes, end - length - 2); next !== undefined; next = partAt(bytes, next.end)) {
      const last = parts.at(-1)?.number ?? 0;
      if (next.number < last || next.number > LAST_FIELD_OF_FILE || (last === 1 && next.number === 1)) break;
      parts.push(next);
    }
    yield parts;
  }
}

function messagesOf(parts: readonly Part[], number: number): readonly (readonly Part[])[] {
  return parts.flatMap((part) =>
    part.number === number && typeof part.value !== "number" ? [partsOf(part.value)] : [],
  );
}

function textOf(parts: readonly Part[], number: number): string {
  return parts.find((part) => part.number === number)?.value.toString() ?? "";
}

function numberOf(parts: readonly Part[], number: number): number {
  const value = parts.find((part) => part.number === number)?.value;
  return typeof value === "number" ? value : 0;
}

function partsOf(bytes: Buffer): readonly Part[] {
  const parts: Part[] = [];
  for (let next = partAt(bytes, 0); next !== undefined; next = partAt(bytes, next.end)) parts.push(next);
  return parts;
}

/** Undefined at the end of the bytes, or where they are no field. */
function partAt(bytes: Buffer, at: number): Part | undefined {
  const tag = varintAt(bytes, at);
  if (tag === undefined) return undefined;
  const number = Math.floor(tag.value / 8);
  const type = tag.value % 8;
  const fixed = FIXED_SIZES.get(type);
  if (number === 0) return undefined;
  if (fixed !== undefined) return partOf(bytes, number, tag.end, fixed);
  const value = varintAt(bytes, tag.end);
  if (value === undefined) return undefined;
  if (type === VARINT) return { number, value: value.value, end: value.end };
  return type === LENGTH_DELIMITED ? partOf(bytes, number, value.end, value.value) : undefined;
}

function partOf(bytes: Buffer, number: number, from: number, length: number): Part | undefined {
  const end = from + length;
  return end > bytes.length ? undefined : { number, value: bytes.subarray(from, end), end };
}

function varintAt(bytes: Buffer, from: number): { readonly value: number; readonly end: number } | undefined {
  let value = 0;
  for (let at = from; at < from + 10; at++) {
    const byte = bytes[at];
    if (byte === undefined) return undefined;
    value += (byte & 0x7f) * 2 ** (7 * (at - from));
    if (byte < 0x80) return { value, end: at + 1 };
  }
  return undefined;
}
