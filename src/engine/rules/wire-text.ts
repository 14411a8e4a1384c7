/**
 * Text of a route that data planes put on the wire as it is written. It must not end the line or the part of the line that it stands in: what followed would be a header, a request or a
 * cookie's attribute of the author's choice. The API's own schemas do not say so everywhere.
 */
import { Unservable } from "./compiled.ts";

// biome-ignore lint/suspicious/noControlCharactersInRegex: it is about these
const CONTROL = /[\u0000-\u0008\u000a-\u001f\u007f]/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: it is about these
const NOT_IN_A_PATH = /[\u0000-\u0020\u007f]/;
/** Names of cookies are tokens; the values of their attributes end at a semicolon. */
const NOT_IN_A_TOKEN = /[^!#$%&'*+\-.^_`|~0-9A-Za-z]/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: it is about these
const NOT_IN_AN_ATTRIBUTE = /[\u0000-\u001f\u007f;]/;

export function checkedHeaderValue(name: string, value: string): Unservable | undefined {
  return refused(CONTROL, value, `the value of header ${name}`);
}

export function checkedPath(value: string | undefined, what: string): Unservable | undefined {
  return refused(NOT_IN_A_PATH, value, what);
}

export function checkedCookie(
  cookie: { readonly name?: string; readonly path?: string } | undefined,
): Unservable | undefined {
  return (
    refused(NOT_IN_A_TOKEN, cookie?.name, "the name of the cookie") ??
    refused(NOT_IN_AN_ATTRIBUTE, cookie?.path, "the path of the cookie")
  );
}

function refused(pattern: RegExp, value: string | undefined, what: string): Unservable | undefined {
  const [found] = pattern.exec(value ?? "") ?? [];
  if (found === undefined) return undefined;
  const message = `${what} has a character that may not stand there: ${JSON.stringify(found)}`;
  return new Unservable("UnsupportedValue", message);
}
