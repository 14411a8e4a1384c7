/**
 * Random tests draw the same cases in every run of `npm test`, so that no change fails by chance.
 * `SEED=random` draws new cases, `SEED=<number>` those of an earlier run. fast-check prints the
 * seed of a failure. The long forms (`test:histories`) always draw new ones.
 */
import { configureGlobal } from "fast-check";

const FIXED = 20_261_118;

export function chosenSeed(env: Readonly<Record<string, string | undefined>> = process.env): number {
  const { SEED: wanted = env["HISTORIES"] === undefined ? String(FIXED) : "random" } = env;
  if (wanted === "random") return Math.floor(Math.random() * 2 ** 31);
  const seed = Number(wanted);
  if (!Number.isInteger(seed)) throw new Error(`SEED is "${wanted}": use "random" or a whole number`);
  return seed;
}

configureGlobal({ seed: chosenSeed() });
