import { type Field, makeField } from "./field.ts";

/** RFC 7541, appendix A. The first entry has the index 1. */
export const staticTable: readonly Field[] = (
  [
    [":authority", ""],
    [":method", "GET"],
    [":method", "POST"],
    [":path", "/"],
    [":path", "/index.html"],
    [":scheme", "http"],
    [":scheme", "https"],
    [":status", "200"],
    [":status", "204"],
    [":status", "206"],
    [":status", "304"],
    [":status", "400"],
    [":status", "404"],
    [":status", "500"],
    ["accept-charset", ""],
    ["accept-encoding", "gzip, deflate"],
    ["accept-language", ""],
    ["accept-ranges", ""],
    ["accept", ""],
    ["access-control-allow-origin", ""],
    ["age", ""],
    ["allow", ""],
    ["authorization", ""],
    ["cache-control", ""],
    ["content-disposition", ""],
    ["content-encoding", ""],
    ["content-language", ""],
    ["content-length", ""],
    ["content-location", ""],
    ["content-range", ""],
    ["content-type", ""],
    ["cookie", ""],
    ["date", ""],
    ["etag", ""],
    ["expect", ""],
    ["expires", ""],
    ["from", ""],
    ["host", ""],
    ["if-match", ""],
    ["if-modified-since", ""],
    ["if-none-match", ""],
    ["if-range", ""],
    ["if-unmodified-since", ""],
    ["last-modified", ""],
    ["link", ""],
    ["location", ""],
    ["max-forwards", ""],
    ["proxy-authenticate", ""],
    ["proxy-authorization", ""],
    ["range", ""],
    ["referer", ""],
    ["refresh", ""],
    ["retry-after", ""],
    ["server", ""],
    ["set-cookie", ""],
    ["strict-transport-security", ""],
    ["transfer-encoding", ""],
    ["user-agent", ""],
    ["vary", ""],
    ["via", ""],
    ["www-authenticate", ""],
  ] as const
).map(([name, value]) => makeField(name, value));

/** The lowest index with this name; 0 if there is none. */
export function staticNameIndex(name: string): number {
  return byName.get(name) ?? 0;
}

/** The index of the whole field; 0 if there is none. */
export function staticIndex(name: string, value: string): number {
  const first = byName.get(name) ?? 0;
  for (let index = first; index > 0 && index <= staticTable.length; index++) {
    const field = staticTable[index - 1] as Field;
    if (field.name !== name) break;
    if (field.value === value) return index;
  }
  return 0;
}

const byName: ReadonlyMap<string, number> = new Map(
  staticTable.map(({ name }, at): [string, number] => [name, at + 1]).reverse(),
);
