import { BlockList, isIPv6 } from "node:net";
import { describe, expect, test } from "vitest";
import { AddressList } from "../../../../src/dataplanes/embedded/guards/address-list.ts";
import { addressWords, parseRange } from "../../../../src/dataplanes/embedded/guards/ip-address.ts";
import { seeded } from "../../support/sockets.ts";

function includes(list: AddressList | undefined, text: string): boolean {
  const address = addressWords(text);
  if (list === undefined || address === undefined) throw new Error(`not an address, or no list: ${text}`);
  return list.includes(address);
}

const random = seeded(7);
const below = (bound: number): number => Math.floor(random() * bound);

/** Few different numbers, so that ranges nest and touch. */
function someAddress(v6: boolean): string {
  if (!v6) return `10.${below(4)}.${below(256)}.${below(256)}`;
  return `2001:db8:${below(4).toString(16)}:${below(65536).toString(16)}::${below(65536).toString(16)}`;
}

describe("lists of addresses", () => {
  test("ten thousand ranges say of every address what Node's block list says", () => {
    const ranges = Array.from({ length: 10_000 }, () => {
      const v6 = below(2) === 1;
      return `${someAddress(v6)}/${v6 ? 52 + below(77) : 20 + below(13)}`;
    });
    const oracle = new BlockList();
    // Each is looked for in all of the ranges: as many as the oracle answers in a moment.
    for (const range of ranges.slice(0, 600)) {
      const [address = "", bits] = range.split("/");
      oracle.addSubnet(address, Number(bits), isIPv6(address) ? "ipv6" : "ipv4");
    }
    const few = AddressList.of(ranges.slice(0, 600));
    let inside = 0;
    for (let round = 0; round < 3_000; round++) {
      const address = someAddress(below(2) === 1);
      const expected = oracle.check(address, isIPv6(address) ? "ipv6" : "ipv4");
      if (expected) inside++;
      expect(includes(few, address), address).toBe(expected);
    }
    expect(inside).toBeGreaterThan(100);
    expect(inside).toBeLessThan(2_900);

    const all = AddressList.of(ranges);
    for (const range of ranges) expect(includes(all, range.split("/")[0] ?? "")).toBe(true);
  });

  test("an address in any of its forms is the same address", () => {
    for (const text of ["::ffff:192.0.2.1", "::FFFF:c000:201", "0:0:0:0:0:ffff:192.0.2.1"]) {
      expect(addressWords(text)).toEqual(addressWords("192.0.2.1"));
    }
    expect(addressWords("2001:DB8::1")).toEqual(addressWords("2001:db8:0:0:0:0:0:1"));
    expect(addressWords("::")).toEqual([0, 0, 0, 0]);
    expect(addressWords("1::")).toEqual([0x10000, 0, 0, 0]);
    expect(addressWords("::1.2.3.4")).toEqual([0, 0, 0, 0x01020304]);
    expect(addressWords("fe80::1%eth0")).toEqual(addressWords("fe80::1"));
    expect(addressWords("255.255.255.255")).toEqual([0xffffffff]);
    for (const text of ["", "1.2.3", "1.2.3.4.5", "01.2.3.4", "::1::", "g::", "192.0.2.1:80", "[::1]"]) {
      expect(addressWords(text), text).toBe(undefined);
    }
  });

  test("a range is in CIDR notation, and nothing else is one", () => {
    expect(parseRange("10.1.2.3/8")).toEqual({ first: [0x0a000000], last: [0x0affffff] });
    expect(parseRange("0.0.0.0/0")).toEqual({ first: [0], last: [0xffffffff] });
    expect(parseRange("::/0")?.last).toEqual([0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff]);
    expect(parseRange("2001:db8::/33")?.last.slice(0, 2)).toEqual([0x20010db8, 0x7fffffff]);
    for (const text of [
      "",
      "/",
      "10.0.0.0",
      "10.0.0.0/",
      "10.0.0.0/33",
      "10.0.0.0/08",
      "10.0.0.0/-1",
      "10.0.0.0/8/8",
      "10.0.0/8",
      "::/129",
      "::ffff:10.0.0.0/104",
      "fe80::%eth0/64",
      "10.0.0.0/0x8",
      " 10.0.0.0/8",
    ]) {
      expect(parseRange(text), text).toBe(undefined);
    }
    expect(AddressList.of(["10.0.0.0/8", "nonsense"])).toBe(undefined);
  });
});
