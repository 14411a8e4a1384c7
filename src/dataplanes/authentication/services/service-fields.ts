/** Header fields in the answers of services that are asked about a request. */
import { hopByHopFields } from "../../hop-by-hop-fields.ts";

/** What clients get of an answer that lets their request pass: a login that is renewed. */
export const CLIENT_FIELDS: readonly string[] = ["set-cookie"];

/** What frames a message is not a service's to say. */
const FRAMING: ReadonlySet<string> = new Set([...hopByHopFields, "content-length", "date", "host"]);
/** The gateway's own word, or about the answer itself: no word about the request. */
const NOT_SET = /^(:.*|authority|content-.*|expect|proxy-.*|x-envoy-.*|x-forwarded-.*|x-mergeway-.*)$/;
const FIELD_NAME = /^[a-z0-9!#$%&'*+\-.^_`|~]{1,256}$/;
const NOT_IN_A_VALUE = /[^\t -~\x80-\xff]/;

/** Whether a field that was asked for can be passed on. */
export function isUnframed(name: string): boolean {
  return !FRAMING.has(name);
}

/** Whether a service can set or remove a field that nobody has named. Lower case. */
export function isSettable(name: string): boolean {
  return FIELD_NAME.test(name) && isUnframed(name) && !NOT_SET.test(name);
}

/** Whether a client can be sent a field that nobody has named. Lower case. */
export function isForClients(name: string): boolean {
  return FIELD_NAME.test(name) && isUnframed(name) && !/^(:|x-envoy-|x-mergeway-)/.test(name);
}

export function isSendableValue(value: string): boolean {
  return !NOT_IN_A_VALUE.test(value);
}
