/**
 * Heads as they go out. Whatever is not a header field by the letter is refused here, whoever has
 * made it up: no value gets to begin a line.
 */

import { STATUS_CODES } from "node:http";
import type { HeaderFields } from "../message/header-fields.ts";
import { isToken } from "./field-block.ts";

const unsafe = /[^\t\x20-\x7e\x80-\xff]/;
const safeNames: Set<string> = new Set();
const SAFE_NAMES = 1024;

/** `name: value` lines. Throws on a field that cannot be sent. */
export function fieldLines(headers: HeaderFields): string {
  const { flat } = headers;
  let lines = "";
  for (let at = 0; at < flat.length; at += 2) {
    const name = flat[at] as string;
    const value = flat[at + 1] as string;
    if (!safeNames.has(name)) learn(name);
    if (unsafe.test(value)) throw new TypeError(`the value of ${name} cannot be sent`);
    lines += `${name}: ${value}\r\n`;
  }
  return lines;
}

function learn(name: string): void {
  if (!isToken(name)) throw new TypeError("a field's name cannot be sent");
  if (safeNames.size >= SAFE_NAMES) safeNames.clear();
  safeNames.add(name);
}

const statusLines: Map<number, string> = new Map();

export function statusLine(status: number): string {
  const known = statusLines.get(status);
  if (known !== undefined) return known;
  if (!Number.isInteger(status) || status < 100 || status > 999)
    throw new RangeError(`${status} is no status`);
  const line = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? "Unknown"}\r\n`;
  statusLines.set(status, line);
  return line;
}

let dateText = "";
let dateSecond = 0;

/** The clock is read once a second at most. */
export function dateLine(): string {
  const now = Date.now();
  if (now - dateSecond >= 1_000 || now < dateSecond) {
    dateSecond = now - (now % 1_000);
    dateText = `date: ${new Date(now).toUTCString()}\r\n`;
  }
  return dateText;
}
