import { expect, test } from "vitest";
import { readJwt } from "../../../src/engine/policies/jwt.ts";

test("a key set may have a hundred keys and no more", () => {
  const read = (count: number): ReturnType<typeof readJwt> => {
    const inline = JSON.stringify({ keys: Array(count).fill({ kty: "OKP", crv: "Ed25519", x: "a" }) });
    return readJwt({ issuers: [{ issuer: "https://issuer.example", jwks: { inline } }] });
  };
  expect(read(100)).not.toHaveProperty("problem");
  expect(read(101)).toEqual({ problem: "issuers[0].jwks.inline has more than 100 keys" });
});
