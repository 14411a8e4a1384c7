/**
 * Header fields of HTTP/2, and what RFC 9113, 8.2 and 8.3 allow.
 *
 * A field is checked once, when it is decoded or enters a table. A message that refers to a table
 * entry only looks at the result, the field's kind.
 */

export const fieldKind = {
  regular: 0,
  method: 1,
  scheme: 2,
  path: 3,
  authority: 4,
  protocol: 5,
  status: 6,
  host: 7,
  cookie: 8,
  contentLength: 9,
  te: 10,
  /** Connection-specific (RFC 9113, 8.2.2). */
  connectionSpecific: 11,
  unknownPseudo: 12,
  /** Has an invalid character. */
  malformed: 13,
} as const;

export type FieldKind = (typeof fieldKind)[keyof typeof fieldKind];

export interface Field {
  readonly name: string;
  readonly value: string;
  readonly kind: FieldKind;
  /** As RFC 7541, 4.1 and RFC 9113, 6.5.2 count. */
  readonly size: number;
}

const kinds: ReadonlyMap<string, FieldKind> = new Map<string, FieldKind>([
  [":method", fieldKind.method],
  [":scheme", fieldKind.scheme],
  [":path", fieldKind.path],
  [":authority", fieldKind.authority],
  [":protocol", fieldKind.protocol],
  [":status", fieldKind.status],
  ["host", fieldKind.host],
  ["cookie", fieldKind.cookie],
  ["content-length", fieldKind.contentLength],
  ["te", fieldKind.te],
  ["connection", fieldKind.connectionSpecific],
  ["keep-alive", fieldKind.connectionSpecific],
  ["proxy-connection", fieldKind.connectionSpecific],
  ["transfer-encoding", fieldKind.connectionSpecific],
  ["upgrade", fieldKind.connectionSpecific],
  ["http2-settings", fieldKind.connectionSpecific],
]);

const fieldName = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;
/** Visible characters and bytes beyond ASCII, with spaces and tabs only between them. */
const fieldValue = /^(?:[\x21-\x7e\x80-\xff](?:[\x20-\x7e\x80-\xff\t]*[\x21-\x7e\x80-\xff])?)?$/;

export function makeField(name: string, value: string): Field {
  return { name, value, kind: kindOf(name, value), size: fieldSize(name, value) };
}

export function fieldSize(name: string, value: string): number {
  return name.length + value.length + 32;
}

export function isFieldName(name: string): boolean {
  return fieldName.test(name);
}

export function isFieldValue(value: string): boolean {
  return fieldValue.test(value);
}

export function isConnectionSpecific(name: string): boolean {
  return kinds.get(name) === fieldKind.connectionSpecific;
}

function kindOf(name: string, value: string): FieldKind {
  if (!fieldValue.test(value)) return fieldKind.malformed;
  const known = kinds.get(name);
  if (known !== undefined) return known;
  if (name.charCodeAt(0) === 58) return fieldKind.unknownPseudo;
  return fieldName.test(name) ? fieldKind.regular : fieldKind.malformed;
}
