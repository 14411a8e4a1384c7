import { createHash } from "node:crypto";

/**
 * SHA-256 of a text or of bytes, shortened to so many characters. What is kept or sent says how
 * many: names of objects, versions and tokens of a release must stay the same in the next one.
 */
export function digest(content: string | Uint8Array, encoding: "hex" | "base64url", length?: number): string {
  return createHash("sha256").update(content).digest(encoding).slice(0, length);
}
