/** Basic authentication (RFC 7617) with an htpasswd file: bcrypt, `{SHA}` and `$apr1$`. */
import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { BasicAuthCheck } from "../../plan/authentication.ts";
import type { BcryptComparer } from "./bcrypt.ts";
import { type AuthenticationRequest, allow, type Decision, unauthenticated } from "./foundation/decision.ts";

const CHALLENGE = 'Basic realm="protected", charset="UTF-8"';
/** bcrypt looks at no more. */
const LONGEST_FOR_BCRYPT = 72;
/** The time that `$apr1$` takes grows with the password, which anybody can send. */
const LONGEST_PASSWORD = 1_024;

/** Checks are immutable. */
const files: WeakMap<BasicAuthCheck, ReadonlyMap<string, string>> = new WeakMap();

export interface BasicParts {
  readonly tenant: string;
  readonly comparer: BcryptComparer;
  readonly known: KnownPasswords;
  readonly signal: AbortSignal;
}

export async function checkBasic(
  check: BasicAuthCheck,
  { headers }: AuthenticationRequest,
  parts: BasicParts,
): Promise<Decision> {
  const given = readCredentials(headers.get("authorization"));
  const hash = given && usersOf(check).get(given.user);
  if (given === undefined || hash === undefined) return unauthenticated(CHALLENGE);
  if (!(await fits(given.password, hash, parts))) return unauthenticated(CHALLENGE);
  const set = check.userHeader === undefined ? [] : [[check.userHeader, bytesOf(given.user)] as const];
  return allow(set, { hiddenHeaders: ["authorization"] });
}

function usersOf(check: BasicAuthCheck): ReadonlyMap<string, string> {
  let users = files.get(check);
  if (users === undefined) {
    const lines = check.users
      .reveal()
      .split("\n")
      .filter((line) => line.includes(":"));
    users = new Map(lines.map((line) => splitAt(line, line.indexOf(":"))));
    files.set(check, users);
  }
  return users;
}

/** One field with one user; two fields come joined with a comma, which no base64 has. */
function readCredentials(
  field: string | undefined,
): { readonly user: string; readonly password: string } | undefined {
  const encoded = /^basic +([A-Za-z0-9+/]+={0,2})$/i.exec(field ?? "")?.[1];
  if (encoded === undefined) return undefined;
  const text = Buffer.from(encoded, "base64").toString("utf8");
  const colon = text.indexOf(":");
  // A name with a control character could not go on as a header field.
  if (colon < 0 || !/^[\x20-\x7e\u00a0-\uffff]*$/u.test(text)) return undefined;
  const [user, password] = splitAt(text, colon);
  return { user, password };
}

/** UTF-8, as a string of bytes. */
function bytesOf(text: string): string {
  return Buffer.from(text).toString("latin1");
}

function splitAt(text: string, at: number): readonly [string, string] {
  return [text.slice(0, at), text.slice(at + 1)];
}

async function fits(password: string, hash: string, parts: BasicParts): Promise<boolean> {
  if (hash.startsWith("{SHA}"))
    return isSame(`{SHA}${createHash("sha1").update(password).digest("base64")}`, hash);
  const longest = hash.startsWith("$apr1$") ? LONGEST_PASSWORD : LONGEST_FOR_BCRYPT;
  if (Buffer.byteLength(password) > longest) return false;
  if (parts.known.has(parts.tenant, password, hash)) return true;
  const equal = await parts.comparer.compare(parts.tenant, { password, hash, signal: parts.signal });
  if (equal) parts.known.add(parts.tenant, password, hash);
  return equal;
}

function isSame(a: string, b: string): boolean {
  const [one, other] = [Buffer.from(a), Buffer.from(b)];
  return one.length === other.length && timingSafeEqual(one, other);
}

/** Of one tenant. */
const MOST_KNOWN = 4_096;

/**
 * Passwords that were right a moment ago, so that not every request of a user costs a comparison.
 * Kept as codes of a key that this process alone has; with another hash, a password is another
 * entry. Tenants do not push out each other's.
 */
export class KnownPasswords {
  readonly #key: Buffer = randomBytes(32);
  readonly #codes: Map<string, Set<string>> = new Map();

  has(tenant: string, password: string, hash: string): boolean {
    const codes = this.#codes.get(tenant);
    const code = this.#code(password, hash);
    if (codes?.delete(code) !== true) return false;
    // The least recently used one goes first.
    codes.add(code);
    return true;
  }

  add(tenant: string, password: string, hash: string): void {
    const codes = this.#codes.get(tenant) ?? new Set();
    this.#codes.set(tenant, codes);
    const [oldest] = codes;
    if (codes.size >= MOST_KNOWN && oldest !== undefined) codes.delete(oldest);
    codes.add(this.#code(password, hash));
  }

  #code(password: string, hash: string): string {
    return createHmac("sha256", this.#key).update(hash).update("\0").update(password).digest("base64");
  }
}
