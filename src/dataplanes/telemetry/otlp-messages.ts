/**
 * Spans and log records as messages of OTLP (opentelemetry-proto, trace/v1, logs/v1, common/v1),
 * in Protocol Buffers. A message is its bytes, so a record that waits costs no more than them.
 */

import type { RequestRecord } from "../request-record.ts";
import { attributesOf, isError, type NamedRequest, spanName } from "./request-fields.ts";

export type Signal = "traces" | "logs";

type Value = string | number;

/** The service that the records are of. */
export interface OtlpResource {
  readonly service: string;
  readonly instance: string;
  readonly version: string;
}

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;
const SPAN_KIND_SERVER = 2;
const STATUS_ERROR = 2;
const SEVERITY_INFO = 9;
const SEVERITY_ERROR = 17;
/** Whether the parent is in another process is known, and it is (trace.proto, SpanFlags). */
const REMOTE_PARENT = 0x300;
const SCHEMA = "https://opentelemetry.io/schemas/1.37.0";

/** One span of a request that is sampled. */
export function spanMessage(request: NamedRequest): Buffer | undefined {
  const { record } = request;
  const { trace } = record;
  if (trace === undefined || !trace.isSampled) return undefined;
  return Buffer.concat([
    bytesField(1, Buffer.from(trace.traceId, "hex")),
    bytesField(2, Buffer.from(trace.spanId, "hex")),
    ...(trace.parentId === undefined ? [] : [bytesField(4, Buffer.from(trace.parentId, "hex"))]),
    bytesField(5, Buffer.from(spanName(record))),
    varintField(6, SPAN_KIND_SERVER),
    timeField(7, record.time),
    timeField(8, record.time + record.durationMs),
    attributeFields(9, attributesOf(request)),
    ...(isError(record) ? [bytesField(15, varintField(3, STATUS_ERROR))] : []),
    fixed32Field(16, 1 | (trace.parentId === undefined ? 0 : REMOTE_PARENT)),
  ]);
}

export function logMessage(request: NamedRequest): Buffer {
  const { record } = request;
  const { trace } = record;
  return Buffer.concat([
    timeField(1, record.time),
    varintField(2, isError(record) ? SEVERITY_ERROR : SEVERITY_INFO),
    bytesField(5, anyValue(summary(record))),
    attributeFields(6, attributesOf(request)),
    bytesField(
      6,
      Buffer.concat([keyField("mergeway.duration_ms"), bytesField(2, double(record.durationMs))]),
    ),
    ...(trace === undefined
      ? []
      : [
          fixed32Field(8, trace.isSampled ? 1 : 0),
          bytesField(9, Buffer.from(trace.traceId, "hex")),
          bytesField(10, Buffer.from(trace.spanId, "hex")),
        ]),
    timeField(11, record.time + record.durationMs),
    bytesField(12, Buffer.from("mergeway.request")),
  ]);
}

/** ExportTraceServiceRequest or ExportLogsServiceRequest, which have the same form. */
export function exportRequest(resource: OtlpResource, records: readonly Buffer[]): Buffer {
  const { service, instance, version } = resource;
  const attributes = [
    ["service.name", service],
    ["service.instance.id", instance],
    ["service.version", version],
  ] as const;
  const described = attributeFields(1, attributes);
  const scope = Buffer.concat([bytesField(1, Buffer.from("mergeway")), bytesField(2, Buffer.from(version))]);
  const scoped = Buffer.concat([bytesField(1, scope), ...records.map((record) => bytesField(2, record))]);
  const whole = [bytesField(1, described), bytesField(2, scoped), bytesField(3, Buffer.from(SCHEMA))];
  return bytesField(1, Buffer.concat(whole));
}

/** How many records the collector has not taken, as its answer says (`partial_success`). */
export function rejectedRecords(response: Buffer): number {
  const partial = fieldOf(response, 1);
  const rejected = partial instanceof Buffer ? fieldOf(partial, 1) : undefined;
  return typeof rejected === "number" ? rejected : 0;
}

function summary({ method, status }: RequestRecord): string {
  return `${method.slice(0, 64)} ${status}`;
}

/** Room for the attributes of one record, whose values have limits (request-fields.ts). */
const room: Buffer = Buffer.allocUnsafe(64 * 1024);
const keys: Map<string, Buffer> = new Map();

function keyField(key: string): Buffer {
  const known = keys.get(key) ?? bytesField(1, Buffer.from(key));
  keys.set(key, known);
  return known;
}

/** There are some thirty for each request: their lengths are known before anything is copied. */
function attributeFields(
  number: number,
  attributes: readonly (readonly [key: string, value: Value])[],
): Buffer {
  let at = 0;
  for (const [key, value] of attributes) {
    const head = keyField(key);
    const size = typeof value === "string" ? Buffer.byteLength(value) : 0;
    const any = typeof value === "string" ? 1 + varintSize(size) + size : 1 + varintSize(value);
    at = writeVarint((number << 3) | BYTES, at);
    at = writeVarint(head.length + 1 + varintSize(any) + any, at);
    at += head.copy(room, at);
    at = writeVarint((2 << 3) | BYTES, at);
    at = writeVarint(any, at);
    if (typeof value === "string") {
      at = writeVarint(size, writeVarint((1 << 3) | BYTES, at));
      at += room.write(value, at);
    } else at = writeVarint(value, writeVarint((3 << 3) | VARINT, at));
  }
  return Buffer.from(room.subarray(0, at));
}

function writeVarint(value: number, from: number): number {
  let at = from;
  let rest = value;
  for (; rest > 0x7f; rest = Math.floor(rest / 0x80)) room[at++] = (rest % 0x80) | 0x80;
  room[at++] = rest;
  return at;
}

function varintSize(value: number): number {
  let size = 1;
  for (let rest = value; rest > 0x7f; rest = Math.floor(rest / 0x80)) size++;
  return size;
}

function anyValue(value: Value): Buffer {
  return typeof value === "string" ? bytesField(1, Buffer.from(value)) : varintField(3, value);
}

/** Of milliseconds, to the microsecond. */
function double(value: number): Buffer {
  const bytes = Buffer.alloc(9);
  bytes[0] = (4 << 3) | FIXED64;
  bytes.writeDoubleLE(Math.round(value * 1000) / 1000, 1);
  return bytes;
}

function bytesField(number: number, bytes: Buffer): Buffer {
  return Buffer.concat([varint((number << 3) | BYTES), varint(bytes.length), bytes]);
}

function varintField(number: number, value: number): Buffer {
  return Buffer.concat([varint((number << 3) | VARINT), varint(Math.max(0, Math.trunc(value)))]);
}

function fixed32Field(number: number, value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return Buffer.concat([varint((number << 3) | FIXED32), bytes]);
}

/** Nanoseconds since the epoch. */
function timeField(number: number, milliseconds: number): Buffer {
  const bytes = Buffer.alloc(9);
  bytes[0] = (number << 3) | FIXED64;
  const whole = Math.floor(milliseconds);
  const rest = Math.round((milliseconds - whole) * 1_000_000);
  bytes.writeBigUInt64LE(BigInt(whole) * 1_000_000n + BigInt(rest), 1);
  return bytes;
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 0x7f; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80);
  bytes.push(rest);
  return Buffer.from(bytes);
}

/** The first field of a number: its bytes, or its value. */
function fieldOf(bytes: Buffer, wanted: number): Buffer | number | undefined {
  let at = 0;
  const next = (): number => {
    let value = 0;
    for (let scale = 1; at < bytes.length; scale *= 0x80) {
      const byte = bytes[at++] as number;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) break;
    }
    return value;
  };
  while (at < bytes.length) {
    const tag = next();
    const type = tag % 8;
    const length = type === BYTES ? next() : type === FIXED64 ? 8 : type === FIXED32 ? 4 : 0;
    const value = type === VARINT ? next() : bytes.subarray(at, at + length);
    if (Math.floor(tag / 8) === wanted) return value;
    at += length;
  }
  return undefined;
}
