/**
 * Lines of an access log: JSON, or a text with a format. `%name%` in a format is a field, `%%` a
 * percent sign. A field without a value is `-`.
 *
 * No value can end its line, look like another field inside quotation marks, or steer a terminal:
 * control characters, and those that change the direction of writing, are written as `\uXXXX`, and
 * in a text quotation marks and backslashes have a backslash.
 */

import { type NamedRequest, REQUEST_FIELDS, type RequestField } from "./request-fields.ts";

export type RenderLine = (request: NamedRequest) => string;

/** Who asked for what, what came of it, and who served. */
export const DEFAULT_TEXT: string = [
  '%client% [%time%] "%method% %path% %protocol%" "%authority%" %status% %bytesSent% %durationMs%ms',
  '%routeKind%/%routeNamespace%/%routeName%#%rule% %endpoint% "%reason%"',
].join(" ");

/** Controls (C0 and C1), separators of lines, what changes the direction, the byte order mark. */
const UNSAFE = /[\p{Cc}\p{Cs}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/gu;

export function jsonLine(request: NamedRequest): string {
  const line: Record<string, string | number> = {};
  for (const { name, of } of REQUEST_FIELDS) {
    const value = of(request);
    if (value !== undefined && value !== "") line[name] = value;
  }
  return JSON.stringify(line).replace(UNSAFE, escaped);
}

/** Undefined: the format has a name that is no field's. */
export function textLine(format: string): RenderLine | undefined {
  const parts: (string | RequestField)[] = [];
  let at = 0;
  for (const { 0: whole, index } of format.matchAll(/%([A-Za-z]*)%/g)) {
    const name = whole.slice(1, -1);
    const field = REQUEST_FIELDS.find((each) => each.name === name);
    if (name !== "" && field === undefined) return undefined;
    parts.push(format.slice(at, index), field ?? "%");
    at = index + whole.length;
  }
  parts.push(format.slice(at));
  if (parts.some((part) => typeof part === "string" && part !== "%" && /[%\r\n]/.test(part)))
    return undefined;
  return (request) =>
    parts.map((part) => (typeof part === "string" ? part : asText(part.of(request)))).join("");
}

function asText(value: string | number | undefined): string {
  if (value === undefined || value === "") return "-";
  if (typeof value === "number") return String(value);
  return value.replace(/["\\]/g, "\\$&").replace(UNSAFE, escaped);
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
