/** Lists of addresses, against a slow and simple reading of the same lists. */

import { BlockList, isIPv4 } from "node:net";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import {
  admissionOf,
  cidrsOf,
  readableRanges,
  readRanges,
} from "../../../../src/dataplanes/envoy/compile/address-ranges.ts";

const byte = fc.constantFrom(0, 1, 10, 127, 128, 192, 255);
const group = fc.constantFrom("0", "1", "ffff", "2001", "db8", "8000");
const v4 = fc.array(byte, { minLength: 4, maxLength: 4 }).map((bytes) => bytes.join("."));
const v6 = fc.array(group, { minLength: 8, maxLength: 8 }).map((groups) => groups.join(":"));
const v4Range = fc.tuple(v4, fc.nat(32)).map(([address, length]) => `${address}/${length}`);
const v6Range = fc
  .tuple(v6, fc.nat(128))
  .filter(([address, length]) => length < 80 || !/^(0:){5}ffff:/.test(address))
  .map(([address, length]) => `${address}/${length}`);
const ranges = fc.array(fc.oneof(v4Range, v6Range), { maxLength: 6 });
const list = fc.record({ allow: fc.option(ranges, { nil: undefined }), deny: ranges });

/** As plan/guard.ts says it. */
function isLetIn(
  address: string,
  lists: readonly { allow: string[] | undefined; deny: string[] }[],
): boolean {
  return lists.every(
    ({ allow, deny }) => !isIn(address, deny) && (allow === undefined || isIn(address, allow)),
  );
}

function isIn(address: string, texts: readonly string[]): boolean {
  const family = isIPv4(address) ? "ipv4" : "ipv6";
  const block = new BlockList();
  for (const text of texts) {
    const [prefix = "", length] = text.split("/");
    if ((isIPv4(prefix) ? "ipv4" : "ipv6") === family) block.addSubnet(prefix, Number(length), family);
  }
  return block.check(address, family);
}

/** As Envoy does it: the narrowest range decides. */
function isAdmitted(address: string, { allow, deny }: ReturnType<typeof admissionOf>): boolean {
  let found = allow === undefined;
  let narrowest = -1;
  const consider = (of: typeof deny, verdict: boolean): void => {
    for (const [prefix, length] of cidrsOf(of)) {
      if (isIPv4(prefix) !== isIPv4(address) || length <= narrowest) continue;
      if (!isIn(address, [`${prefix}/${length}`])) continue;
      narrowest = length;
      found = verdict;
    }
  };
  consider(deny, false);
  consider(allow ?? [], true);
  return found;
}

test("several lists come to one in which the narrowest range decides", () => {
  fc.assert(
    fc.property(
      fc.array(list, { minLength: 1, maxLength: 3 }),
      fc.array(fc.oneof(v4, v6)),
      (lists, addresses) => {
        const admission = admissionOf(
          lists.map(({ allow, deny }) => ({
            ...(allow === undefined ? {} : { allow: readRanges(allow) ?? [] }),
            deny: readRanges(deny) ?? [],
          })),
        );
        for (const address of addresses) {
          const mapped = /^(0:){5}ffff:(.+):(.+)$/.exec(address);
          if (mapped !== null) continue;
          expect(isAdmitted(address, admission), address).toBe(isLetIn(address, lists));
        }
      },
    ),
    { numRuns: 2_000 },
  );
});

test("a mapped address is in the ranges of IPv4 and in none of IPv6", () => {
  const everything = readRanges(["::/0"]) ?? [];
  expect(everything.length).toBe(96);
  expect(isAdmitted("::ffff:192.0.2.1", admissionOf([{ allow: everything, deny: [] }]))).toBe(false);
  expect(isAdmitted("::fffe:c000:201", admissionOf([{ allow: everything, deny: [] }]))).toBe(true);
  const documentation = readRanges(["192.0.2.0/24"]) ?? [];
  expect(isAdmitted("::ffff:192.0.2.1", admissionOf([{ allow: documentation, deny: [] }]))).toBe(true);
  expect(isAdmitted("::ffff:192.0.3.1", admissionOf([{ allow: documentation, deny: [] }]))).toBe(false);
});

test("a range that is repeated, or within another one, adds nothing", () => {
  const everything = readRanges(["::/0"]);
  expect(readRanges(Array.from({ length: 4_096 }, () => "::/0"))).toEqual(everything);
  const nested = Array.from({ length: 96 }, (_, length) => `::/${length}`);
  expect(readRanges([...nested, "2001:db8::/32"])).toEqual(everything);
  expect(readableRanges([...nested, "none"])).toEqual(everything);
  expect(readRanges(["::/0", "10.0.0.0/8", "10.1.0.0/16"])).toHaveLength(97);
});

test("what is no range is not taken for one", () => {
  for (const text of [
    "",
    "10.0.0.0",
    "10.0.0.0/33",
    "10.0.0/8",
    "::/129",
    "::1",
    "fe80::1%eth0/64",
    "a/8",
    "10.0.0.0/",
    "10.0.0.0/-1",
    " 10.0.0.0/8",
    "10.0.0.0/8\n",
    "010.0.0.0/8",
  ]) {
    expect(readRanges(["192.0.2.0/24", text]), text).toBeUndefined();
    expect(readableRanges(["192.0.2.0/24", text]), text).toHaveLength(1);
  }
});
