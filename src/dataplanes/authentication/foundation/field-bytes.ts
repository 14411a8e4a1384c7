/**
 * Values of fields are strings of bytes here, as Node has them (Latin-1). Protocol Buffers have
 * text.
 */
import { isUtf8 } from "node:buffer";

const ASCII = /^[\x20-\x7e]*$/;

/** A value as a string of bytes, of one that was read as UTF-8. */
export function bytesOf(value: string): string {
  return ASCII.test(value) ? value : Buffer.from(value).toString("latin1");
}

/** Text that is written as UTF-8: the value's own bytes, or else Latin-1 that becomes UTF-8. */
export function asText(value: string): string {
  if (ASCII.test(value)) return value;
  const bytes = Buffer.from(value, "latin1");
  return isUtf8(bytes) ? bytes.toString() : value;
}
