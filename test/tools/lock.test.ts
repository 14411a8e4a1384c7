import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import {
  isForSupportedPlatform,
  type LockedPackages,
  missingOptional,
  unchecked,
} from "../../tools/complete-lock.ts";

const file = new URL("../../package-lock.json", import.meta.url);
const { packages } = JSON.parse(readFileSync(file, "utf8")) as { readonly packages: LockedPackages };

it("every package that is installed on a supported platform has an integrity", () => {
  const installed = unchecked(packages).filter((path) => isForSupportedPlatform(packages[path] ?? {}));
  expect(installed, "run: node tools/complete-lock.ts").toEqual([]);
});

it("what has no integrity is an optional package of another platform, for a development tool", () => {
  for (const path of unchecked(packages)) {
    expect(packages[path], path).toMatchObject({ optional: true, dev: true });
  }
});

/**
 * In the versions that are used, the registry that the lock file was made with carries these for
 * Linux on x64 and arm64 only. Whatever else lacks an integrity is a mistake.
 */
const ELSEWHERE = /^node_modules\/@(?:biomejs\/cli|oxc-parser\/binding|rolldown\/binding)-/;

it("only packages that the registry does not carry have no integrity", () => {
  expect(unchecked(packages).filter((path) => !ELSEWHERE.test(path))).toEqual([]);
});

it("a package without a platform, or for Linux on x64 or arm64, is of a supported platform", () => {
  expect(isForSupportedPlatform({})).toBe(true);
  expect(isForSupportedPlatform({ os: ["linux"], cpu: ["arm64"] })).toBe(true);
  expect(isForSupportedPlatform({ os: ["linux"], cpu: ["s390x"] })).toBe(false);
  expect(isForSupportedPlatform({ os: ["darwin"], cpu: ["arm64"] })).toBe(false);
  expect(isForSupportedPlatform({ cpu: ["wasm32"] })).toBe(false);
});

it("the lock file has every optional package, so that npm ci takes it on every platform", () => {
  expect(Object.keys(missingOptional(packages)), "run: node tools/complete-lock.ts").toEqual([]);
});

it("an entry is made from the platform in the package's name", () => {
  const packages: LockedPackages = {
    "node_modules/a": {
      dev: true,
      optionalDependencies: { "@a/linux-x64-musl": "1.2.3", "@a/windows-arm64": "^2.0.0" },
    },
    "node_modules/a/node_modules/b": { optionalDependencies: { c: "1.0.0" } },
    "node_modules/c": { version: "1.0.0" },
  };
  expect(missingOptional(packages)).toEqual({
    "node_modules/@a/linux-x64-musl": {
      version: "1.2.3",
      cpu: ["x64"],
      dev: true,
      libc: ["musl"],
      optional: true,
      os: ["linux"],
    },
    "node_modules/@a/windows-arm64": {
      version: "2.0.0",
      cpu: ["arm64"],
      dev: true,
      optional: true,
      os: ["win32"],
    },
  });
});
