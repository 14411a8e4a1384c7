/**
 * Apache's variant of MD5-crypt (`$apr1$salt$hash`), as `htpasswd -m` and `openssl passwd -apr1`
 * write it.
 */
import { createHash } from "node:crypto";

const MAGIC = "$apr1$";
const ROUNDS = 1_000;
const ALPHABET = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/** Which bytes of the digest stand in which group of characters. */
const GROUPS: readonly (readonly [number, number, number])[] = [
  [0, 6, 12],
  [1, 7, 13],
  [2, 8, 14],
  [3, 9, 15],
  [4, 10, 5],
];

export function apr1(password: string, salt: string): string {
  const secret = Buffer.from(password);
  const salted = Buffer.from(salt);
  const inner = md5(secret, salted, secret);
  const parts: Buffer[] = [secret, Buffer.from(MAGIC), salted];
  for (let left = secret.length; left > 0; left -= 16) parts.push(inner.subarray(0, Math.min(16, left)));
  for (let bits = secret.length; bits > 0; bits >>= 1)
    parts.push(bits & 1 ? Buffer.alloc(1) : secret.subarray(0, 1));
  let digest = md5(...parts);
  for (let round = 0; round < ROUNDS; round++) {
    digest = md5(
      round & 1 ? secret : digest,
      round % 3 ? salted : EMPTY,
      round % 7 ? secret : EMPTY,
      round & 1 ? digest : secret,
    );
  }
  const at = (index: number): number => digest[index] ?? 0;
  const groups = GROUPS.map(([a, b, c]) => characters((at(a) << 16) | (at(b) << 8) | at(c), 4));
  return `${MAGIC}${salt}$${groups.join("")}${characters(at(11), 2)}`;
}

const EMPTY: Buffer = Buffer.alloc(0);

function md5(...parts: readonly Buffer[]): Buffer {
  const hash = createHash("md5");
  for (const part of parts) hash.update(part);
  return hash.digest();
}

function characters(value: number, count: number): string {
  let text = "";
  for (let rest = value, place = 0; place < count; place++, rest >>>= 6) text += ALPHABET[rest & 0x3f];
  return text;
}
