/** A thread that compares passwords: one comparison may take a second. */
import { parentPort } from "node:worker_threads";
import { compareSync } from "bcryptjs";
import { apr1 } from "./apr1.ts";

export interface Comparison {
  readonly id: number;
  readonly password: string;
  readonly hash: string;
}

export interface Compared {
  readonly id: number;
  readonly equal: boolean;
}

parentPort?.on("message", ({ id, password, hash }: Comparison) => {
  let equal = false;
  try {
    const [, kind, salt = ""] = hash.split("$");
    equal = kind === "apr1" ? apr1(password, salt) === hash : compareSync(password, hash);
  } catch {
    // Not a hash: nobody has this password.
  }
  parentPort?.postMessage({ id, equal } satisfies Compared);
});
