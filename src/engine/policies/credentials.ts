/**
 * Credentials in Secrets. Whoever writes a Secret may make mistakes: one that cannot be read as a
 * whole is not used at all, and the problem names the line or client and never what it says.
 */
import { ClientCredentials } from "../../plan/authentication.ts";

export type CredentialsReading = { readonly credentials: ClientCredentials } | { readonly problem: string };

type SecretData = Readonly<Record<string, string>>;

/** What `htpasswd` itself and other controllers call it. */
const HTPASSWD_KEYS = [".htpasswd", "auth"];
/** As much as a Secret holds. */
const LARGEST_FILE = 1024 * 1024;
const MOST_USERS = 10_000;
const MOST_CLIENTS = 10_000;

const USER = /^[^:\p{Cc}]{1,255}$/u;
/**
 * bcrypt of a cost that a computer can bear: 14 takes about a second, and each further one twice as
 * long.
 */
const HASH =
  /^(?:\$2[aby]\$(?:0[4-9]|1[0-4])\$[./A-Za-z0-9]{53}|\{SHA\}[A-Za-z0-9+/]{27}=|\$apr1\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{22})$/;

export function readHtpasswd(data: SecretData): CredentialsReading {
  const key = HTPASSWD_KEYS.find((each) => data[each] !== undefined);
  if (key === undefined) return { problem: "it has no .htpasswd" };
  const text = decoded(data[key] ?? "");
  if (text === undefined) return { problem: `${key} is not text` };
  if (text.length > LARGEST_FILE) return { problem: `${key} is larger than 1 MiB` };
  const users = new Map<string, string>();
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() === "" || line.startsWith("#")) continue;
    const colon = line.indexOf(":");
    const user = line.slice(0, Math.max(0, colon));
    const hash = line.slice(colon + 1).trim();
    if (!USER.test(user) || !HASH.test(hash)) {
      return {
        problem: `line ${index + 1} of ${key} is no user with a hash of bcrypt (cost 4 to 14), {SHA} or $apr1$`,
      };
    }
    // The first one counts, as for Apache.
    if (!users.has(user)) users.set(user, hash);
    if (users.size > MOST_USERS) return { problem: `${key} has more than ${MOST_USERS} users` };
  }
  if (users.size === 0) return { problem: `${key} has no users` };
  return { credentials: new ClientCredentials(linesOf(users)) };
}

/** Visible ASCII: what a header field and a query parameter can carry. */
const API_KEY = /^[\x21-\x7e]{8,1024}$/;

export function readApiKeys(data: SecretData): CredentialsReading {
  const clients = new Map<string, string>();
  const keys = new Set<string>();
  for (const [client, value] of Object.entries(data)) {
    const key = decoded(value)?.replace(/\r?\n$/, "");
    if (key === undefined || !API_KEY.test(key))
      return { problem: `the key of ${client} is not 8 to 1024 visible characters of ASCII` };
    if (keys.has(key)) return { problem: `two clients have the same key, one is ${client}` };
    keys.add(key);
    clients.set(client, key);
    if (clients.size > MOST_CLIENTS) return { problem: `it has more than ${MOST_CLIENTS} clients` };
  }
  if (clients.size === 0) return { problem: "it has no clients" };
  return { credentials: new ClientCredentials(linesOf(clients)) };
}

function linesOf(entries: ReadonlyMap<string, string>): string {
  return [...entries].map(([name, value]) => `${name}:${value}`).join("\n");
}

/** Base64 of UTF-8, as a Secret has it. */
function decoded(base64: string): string | undefined {
  try {
    const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
