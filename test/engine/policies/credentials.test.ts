import { describe, expect, test } from "vitest";
import { readApiKeys, readHtpasswd } from "../../../src/engine/policies/credentials.ts";

const SHA = "{SHA}2PRZAyDhNDqRW2OUFwZQqPNdaSY=";
const BCRYPT = `$2y$10$${"a".repeat(53)}`;

function base64(text: string | Uint8Array): string {
  return Buffer.from(text).toString("base64");
}

function problemOf(reading: ReturnType<typeof readHtpasswd>): string | undefined {
  return "problem" in reading ? reading.problem : undefined;
}

function htpasswd(text: string): ReturnType<typeof readHtpasswd> {
  return readHtpasswd({ ".htpasswd": base64(text) });
}

describe("an htpasswd file", () => {
  test("has users with hashes of bcrypt, SHA and apr1, comments and empty lines", () => {
    const text = `# people\r\nann:${SHA}\r\n\nbob:${BCRYPT}\neve:$apr1$r31.....$${"x".repeat(22)}\nann:${BCRYPT}\n`;
    const reading = htpasswd(text);
    if (!("credentials" in reading)) throw new Error(reading.problem);
    expect(reading.credentials.reveal().split("\n")).toEqual([
      `ann:${SHA}`,
      `bob:${BCRYPT}`,
      `eve:$apr1$r31.....$${"x".repeat(22)}`,
    ]);
  });

  test("may be called auth", () => {
    expect(problemOf(readHtpasswd({ auth: base64(`ann:${SHA}`) }))).toBeUndefined();
    expect(problemOf(readHtpasswd({ users: base64(`ann:${SHA}`) }))).toBe("it has no .htpasswd");
  });

  test.each([
    ["nothing", ""],
    ["no hash", "ann"],
    ["a password in clear", "ann:hunter2"],
    ["crypt", "ann:rqXexS6ZhobKA"],
    ["an unknown bcrypt", `ann:$2z$10$${"a".repeat(53)}`],
    ["a cost of 31", `ann:$2y$31$${"a".repeat(53)}`],
    ["a cost of 3", `ann:$2y$03$${"a".repeat(53)}`],
    ["no name", `:${SHA}`],
    ["a name with a control character", `a\tb:${SHA}`],
  ])("with %s is not used, and the problem says nothing of its content", (_what, text) => {
    const problem = problemOf(htpasswd(text));
    expect(problem).toBeDefined();
    expect(problem).not.toMatch(/hunter2|rqXex|aaaa/);
  });

  test("of a hundred thousand lines, or of bytes that are no text, is not used", () => {
    const many = Array.from({ length: 100_000 }, (_, index) => `u${index}:${SHA}`).join("\n");
    expect(problemOf(htpasswd(many))).toMatch(/larger than 1 MiB/);
    const fewer = Array.from({ length: 10_001 }, (_, index) => `u${index}:${SHA}`).join("\n");
    expect(problemOf(htpasswd(fewer))).toMatch(/more than 10000 users/);
    expect(problemOf(readHtpasswd({ ".htpasswd": base64(Uint8Array.of(0xff, 0xfe)) }))).toMatch(/not text/);
    expect(problemOf(readHtpasswd({ ".htpasswd": "%%%" }))).toMatch(/not text/);
  });

  test("is shown to nobody", () => {
    const reading = htpasswd(`ann:${SHA}`);
    expect(JSON.stringify(reading)).not.toContain("2PRZ");
    expect(`${"credentials" in reading ? reading.credentials : ""}`).toBe("[credentials]");
  });
});

describe("API keys", () => {
  test("have a client each, with or without a line end", () => {
    const reading = readApiKeys({ ann: base64("key-of-ann\n"), bob: base64("key-of-bob") });
    expect("credentials" in reading && reading.credentials.reveal()).toBe("ann:key-of-ann\nbob:key-of-bob");
  });

  test.each([
    ["no clients", {}],
    ["a short key", { ann: base64("1234567") }],
    ["an empty key", { ann: "" }],
    ["a key with a space", { ann: base64("a key of ann") }],
    ["a key with a line break", { ann: base64("key-of\n-ann-123") }],
    ["the same key twice", { ann: base64("key-of-both"), bob: base64("key-of-both") }],
  ])("with %s are not used, and the problem says nothing of a key", (_what, data) => {
    const problem = problemOf(readApiKeys(data as Record<string, string>));
    expect(problem).toBeDefined();
    expect(problem).not.toMatch(/1234567|key-of|a key of/);
  });
});
