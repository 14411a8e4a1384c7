import { BlockList, isIP, isIPv4 } from "node:net";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  admits,
  isWithin,
  networksOverlap,
  parseAddress,
  parseNetwork,
} from "../../src/matching/networks.ts";

describe("addresses", () => {
  test.each([
    "192.0.2.1",
    "255.255.255.255",
    "::",
    "::1",
    "2001:db8::1",
    "1:2:3:4:5:6:7:8",
    "1:2:3:4:5:6:7::",
    "64:ff9b::192.0.2.1",
  ])("%s is one", (text) => {
    expect(parseAddress(text)).toBeDefined();
  });

  test.each([
    "",
    "192.0.2",
    "192.0.2.256",
    "192.0.02.1",
    "192.0.2.1 ",
    "1:2:3:4:5:6:7",
    "1:2:3:4:5:6:7:8:9",
    "1::2::3",
    "1:2:3:4::5:6:7:8",
    "12345::",
    "fe80::1%eth0",
    "example.com",
    "192.0.2.1:80",
  ])("%j is none", (text) => {
    expect(parseAddress(text)).toBeUndefined();
  });

  test("the IPv4-mapped form is the IPv4 address", () => {
    for (const text of ["::ffff:192.0.2.1", "::FFFF:c000:201", "0:0:0:0:0:ffff:192.0.2.1"])
      expect(parseAddress(text)).toEqual(parseAddress("192.0.2.1"));
  });

  test("what Node takes for an address is one, and nothing else", () => {
    const text = fc.oneof(
      fc.ipV4(),
      fc.ipV6(),
      fc
        .array(fc.constantFrom(":", "::", ".", "0", "1", "ff", "ffff", "10"), { maxLength: 12 })
        .map((each) => each.join("")),
    );
    fc.assert(
      fc.property(text, (each) => {
        expect(parseAddress(each) !== undefined).toBe(isIP(each) !== 0);
      }),
    );
  });
});

describe("networks", () => {
  test.each(["192.0.2.0/33", "192.0.2.0/", "192.0.2.0/-1", "192.0.2.0/8/8", "::/129", "/8"])(
    "%s is none",
    (text) => {
      expect(parseNetwork(text)).toBeUndefined();
    },
  );

  test("hold what Node's block list holds", () => {
    const address = fc.oneof(fc.ipV4(), fc.ipV6());
    fc.assert(
      fc.property(address, address, fc.nat(128), (one, other, length) => {
        const network = parseNetwork(`${one}/${isIPv4(one) ? length % 33 : length}`);
        const parsed = parseAddress(other);
        if (network === undefined || parsed === undefined) return;
        // Node looks for IPv4 addresses in IPv6 networks as well.
        if (network.address.bits !== parsed.bits) {
          expect(isWithin(parsed, network)).toBe(false);
          return;
        }
        const list = new BlockList();
        list.addSubnet(one, network.length, isIPv4(one) ? "ipv4" : "ipv6");
        expect(isWithin(parsed, network)).toBe(list.check(other, isIPv4(other) ? "ipv4" : "ipv6"));
      }),
    );
  });

  test("overlap if and only if one lies within the other", () => {
    const [wide, narrow, other] = ["10.0.0.0/8", "10.1.0.0/16", "11.0.0.0/8"].map(parseNetwork);
    if (wide === undefined || narrow === undefined || other === undefined) throw new Error("no network");
    expect([
      networksOverlap(wide, narrow),
      networksOverlap(narrow, wide),
      networksOverlap(wide, other),
    ]).toEqual([true, true, false]);
  });
});

describe("a check by address", () => {
  const admitted = (check: { allow?: string[]; deny?: string[] }, text: string): boolean => {
    const address = parseAddress(text);
    return address !== undefined && admits({ type: "addresses", ...check }, address);
  };

  test("lets everybody in who is not denied, and without a list everybody", () => {
    expect(admitted({ deny: ["192.0.2.0/24"] }, "192.0.2.9")).toBe(false);
    expect(admitted({ deny: ["192.0.2.0/24"] }, "198.51.100.9")).toBe(true);
    expect(admitted({}, "198.51.100.9")).toBe(true);
  });

  test("denies before it allows", () => {
    const check = { allow: ["192.0.2.0/24"], deny: ["192.0.2.7/32"] };
    expect(admitted(check, "192.0.2.8")).toBe(true);
    expect(admitted(check, "192.0.2.7")).toBe(false);
    expect(admitted(check, "::ffff:192.0.2.7")).toBe(false);
  });

  test("lets nobody in with an empty list", () => {
    expect(admitted({ allow: [] }, "192.0.2.8")).toBe(false);
  });
});
