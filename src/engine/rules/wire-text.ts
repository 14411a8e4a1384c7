/**
 * Text of a route that data planes put on the wire as it is written. It must not end the line or
 * the part of the line that it stands in: what followed would be a header, a request or a cookie's
 * attribute of the author's choice. The API's own schemas do not say so everywhere.
 */
import type { SessionPersistence } from "../../api/routes.ts";
import { Unservable } from "./compiled.ts";

/**
 * The schema of the experimental channel wants this of header values. Letters beyond ASCII have no
 * one form on the wire, and the lower byte of some of them is a line break.
 */
const NOT_IN_A_VALUE = /[^\t -~]/;
const NOT_IN_A_PATH = /[^!-~]/;
/** A query or a fragment is no part of what a path is compared with. */
const NOT_IN_A_MATCHED_PATH = /[^!-~]|[?#]|\/\//;
const NOT_IN_A_HOSTNAME = /[^-0-9A-Za-z._]/;
/**
 * Names of cookies and headers are tokens; the values of a cookie's attributes end at a semicolon.
 */
const NOT_IN_A_TOKEN = /[^!#$%&'*+\-.^_`|~0-9A-Za-z]/;
const NOT_IN_AN_ATTRIBUTE = /[^ -~]|;/;

/** As the API has them: HTTPHeader.name and .value, HTTPQueryParamMatch.name and .value. */
const LONGEST_VALUE = 4096;
const LONGEST_NAME = 256;
const LONGEST_QUERY_VALUE = 1024;

export function checkedHeaderValue(name: string, value: string): Unservable | undefined {
  const what = `the value of header ${name}`;
  return tooLong(value, LONGEST_VALUE, what) ?? refused(NOT_IN_A_VALUE, value, what);
}

export function checkedPath(value: string | undefined, what: string): Unservable | undefined {
  return refused(NOT_IN_A_PATH, value, what);
}

export function checkedPersistence(session: SessionPersistence | undefined): Unservable | undefined {
  const { cookie, header } = session ?? {};
  return (
    refused(NOT_IN_A_TOKEN, cookie?.name, "the name of the cookie") ??
    refused(NOT_IN_AN_ATTRIBUTE, cookie?.path, "the path of the cookie") ??
    refused(NOT_IN_A_TOKEN, header?.name, "the name of the session's header")
  );
}

/** The name of a header is a token (RFC 9110, 5.1). */
export function checkedHeaderName(name: string): Unservable | undefined {
  return (
    named(name, "a header") ??
    tooLong(name, LONGEST_NAME, "the name of a header") ??
    refused(NOT_IN_A_TOKEN, name, `the name of header ${JSON.stringify(name)}`)
  );
}

/** What a query parameter is found by, and compared with. */
export function checkedQuery(name: string, value: string): Unservable | undefined {
  return (
    named(name, "a query parameter") ??
    tooLong(name, LONGEST_NAME, "the name of a query parameter") ??
    named(value, `query parameter ${name}`, "value") ??
    tooLong(value, LONGEST_QUERY_VALUE, `the value of query parameter ${name}`)
  );
}

/** The path of a match, unless it is a regular expression. */
export function checkedMatchPath(path: string): Unservable | undefined {
  if (path.startsWith("/")) return refused(NOT_IN_A_MATCHED_PATH, path, "the path of a match");
  return new Unservable("UnsupportedValue", "the path of a match does not begin with a slash");
}

export function checkedHostname(hostname: string | undefined, what: string): Unservable | undefined {
  return refused(NOT_IN_A_HOSTNAME, hostname, what);
}

/**
 * The API's schemas have these bounds, but a plan may not depend on which of its versions is
 * installed.
 */
export function checkedNumber(
  value: number | undefined,
  [least, most]: readonly [number, number],
  what: string,
): Unservable | undefined {
  if (value === undefined || (Number.isInteger(value) && value >= least && value <= most)) return undefined;
  return new Unservable("UnsupportedValue", `${what} must be between ${least} and ${most}`);
}

function tooLong(text: string, most: number, what: string): Unservable | undefined {
  if (text.length <= most) return undefined;
  return new Unservable("UnsupportedValue", `${what} is longer than ${most} characters`);
}

function named(text: string, whose: string, what = "name"): Unservable | undefined {
  return text === "" ? new Unservable("UnsupportedValue", `the ${what} of ${whose} is empty`) : undefined;
}

function refused(pattern: RegExp, value: string | undefined, what: string): Unservable | undefined {
  const [found] = pattern.exec(value ?? "") ?? [];
  if (found === undefined) return undefined;
  const message = `${what} has a character that may not stand there: ${JSON.stringify(found)}`;
  return new Unservable("UnsupportedValue", message);
}
