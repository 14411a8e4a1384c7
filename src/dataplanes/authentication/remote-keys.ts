/**
 * The keys of an issuer that are at a URL, fetched when they are needed. Anybody can send tokens,
 * so tokens that no key fits, and an issuer that fails, make few fetches. While an issuer is away,
 * the keys that it had count for some time.
 */
import { createLocalJWKSet, errors, type JWTVerifyGetKey } from "jose";
import { MOST_KEYS } from "../../plan/authentication.ts";

const LARGEST_KEY_SET = 1024 * 1024;
const FETCH_MS = 5_000;
/** How long keys are used before they are fetched again. */
const FRESH_MS = 10 * 60_000;
/** How long they are used if they cannot be fetched again. */
const LONGEST_MS = 60 * 60_000;
/** Tokens with an unknown key make no more fetches than one in this time. */
const COOLDOWN_MS = 30_000;
/** After a failure. */
const PAUSE_MS = 5_000;

type KeySet = ReturnType<typeof createLocalJWKSet>;

export class RemoteKeys {
  readonly #url: string;
  #keys: KeySet | undefined;
  #fetchedAt = Number.NEGATIVE_INFINITY;
  #triedAt = Number.NEGATIVE_INFINITY;
  #pending: Promise<KeySet> | undefined;

  constructor(url: string) {
    this.#url = url;
  }

  /** Fails with a JWKSNoMatchingKey where the issuer has none, and otherwise where nobody knows. */
  readonly find: JWTVerifyGetKey = async (header, token) => {
    const keys = await this.#current();
    try {
      return await keys(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey) || Date.now() - this.#triedAt < COOLDOWN_MS)
        throw error;
      return await (await this.#fetch())(header, token);
    }
  };

  async #current(): Promise<KeySet> {
    const [keys, age] = [this.#keys, Date.now() - this.#fetchedAt];
    if (keys !== undefined && age < FRESH_MS) return keys;
    try {
      return await this.#fetch();
    } catch (error) {
      if (keys !== undefined && age < LONGEST_MS) return keys;
      throw error;
    }
  }

  /** All who wait share one. */
  #fetch(): Promise<KeySet> {
    if (this.#pending !== undefined) return this.#pending;
    if (Date.now() - this.#triedAt < PAUSE_MS) return Promise.reject(new Error("the issuer has failed"));
    this.#triedAt = Date.now();
    this.#pending = fetchKeys(this.#url)
      .then((keys) => {
        this.#keys = keys;
        this.#fetchedAt = Date.now();
        return keys;
      })
      .finally(() => {
        this.#pending = undefined;
      });
    return this.#pending;
  }
}

/** A redirect or a set that is too large is a failure. */
async function fetchKeys(url: string): Promise<KeySet> {
  const headers = { accept: "application/json, application/jwk-set+json" };
  const signal = AbortSignal.timeout(FETCH_MS);
  const response = await fetch(url, { headers, signal, redirect: "error" });
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > LARGEST_KEY_SET) throw new Error("the key set is too large");
    chunks.push(chunk);
  }
  if (response.status !== 200) throw new Error("the issuer has no key set");
  const set = JSON.parse(Buffer.concat(chunks).toString());
  const keys = createLocalJWKSet(set);
  if (set.keys.length > MOST_KEYS) throw new Error("the key set has too many keys");
  return keys;
}
