/** The `format`s that schemas name. */

const DATE_TIME =
  /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.\d{1,9})?(?:[Zz]|[+-](\d{2}):(\d{2}))$/;

function isDateTime(text: string): boolean {
  if (text.length > 40) return false;
  const match = DATE_TIME.exec(text);
  if (match === null) return false;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, zoneHour = 0, zoneMinute = 0] = match
    .slice(1)
    .map((digits) => Number(digits ?? 0));
  const days = new Date(Date.UTC(2000 + (year % 400), month, 0)).getUTCDate();
  const dateIsRight = month >= 1 && month <= 12 && day >= 1 && day <= days;
  return dateIsRight && hour <= 23 && minute <= 59 && second <= 59 && zoneHour <= 23 && zoneMinute <= 59;
}

export function isIpv4(text: string): boolean {
  if (text.length > 15) return false;
  const parts = text.split(".");
  return parts.length === 4 && parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) <= 255);
}

export function isIpv6(text: string): boolean {
  if (text.length > 45 || !text.includes(":")) return false;
  const halves = text.split("::");
  if (halves.length > 2) return false;
  const groups = halves.map(countGroups);
  if (groups.some((count) => count < 0)) return false;
  const total = groups.reduce((sum, count) => sum + count, 0);
  // A dotted tail is only right at the very end.
  if (halves.length === 2 && (halves[0] ?? "").includes(".")) return false;
  return halves.length === 2 ? total <= 7 : total === 8;
}

/** How many 16-bit groups a colon-separated run stands for; -1 when it is none. */
function countGroups(run: string): number {
  if (run === "") return 0;
  const parts = run.split(":");
  let count = 0;
  for (const [index, part] of parts.entries()) {
    if (/^[0-9a-fA-F]{1,4}$/.test(part)) count += 1;
    else if (index === parts.length - 1 && isIpv4(part)) count += 2;
    else return -1;
  }
  return count;
}

const BASE64_ALPHABET = /^[A-Za-z0-9+/]*={0,2}$/;

/** Standard base64 with padding; line breaks are skipped as Go's decoder skips them. */
function isBase64(text: string): boolean {
  const bare = /[\r\n]/.test(text) ? text.replace(/[\r\n]/g, "") : text;
  return bare.length % 4 === 0 && BASE64_ALPHABET.test(bare);
}

export interface Format {
  readonly test: (text: string) => boolean;
  readonly meaning: string;
}

const STRING_FORMATS: ReadonlyMap<string, Format> = new Map([
  ["date-time", { test: isDateTime, meaning: "a time such as 2026-01-31T12:00:00Z" }],
  ["ipv4", { test: isIpv4, meaning: "an IPv4 address such as 192.0.2.1" }],
  ["ipv6", { test: isIpv6, meaning: "an IPv6 address such as 2001:db8::1" }],
  ["byte", { test: isBase64, meaning: "base64" }],
]);

export function stringFormat(name: string): Format {
  const format = STRING_FORMATS.get(name);
  if (format === undefined) throw new Error(`no such string format: ${name}`);
  return format;
}

export interface Range {
  readonly least: number;
  readonly most: number;
}

export function integerRange(format: string | undefined): Range {
  switch (format) {
    case "int32":
      return { least: -(2 ** 31), most: 2 ** 31 - 1 };
    case undefined:
    case "int64":
      return { least: -(2 ** 63), most: 2 ** 63 };
    default:
      throw new Error(`no such integer format: ${format}`);
  }
}
