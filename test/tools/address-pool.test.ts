import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { assign, type Claim } from "../../tools/cluster/address-pool.ts";

const ranges = { dynamic: "172.30.16.0/29", onRequest: "172.30.15.0/24" } as const;

function claim(key: string, more: Partial<Claim> = {}): Claim {
  return { key, created: "2026-01-01T00:00:00Z", requested: [], held: [], ...more };
}

function addressesOf(claims: readonly Claim[], cursor = 0): Record<string, readonly string[]> {
  const { grants } = assign(claims, ranges, cursor);
  return Object.fromEntries([...grants].map(([key, grant]) => [key, grant.addresses]));
}

describe("LoadBalancer addresses", () => {
  it("gives an address of the dynamic range to who asks for none", () => {
    expect(addressesOf([claim("a/one"), claim("b/two")])).toEqual({
      "a/one": ["172.30.16.1"],
      "b/two": ["172.30.16.2"],
    });
  });

  it("gives every address that was asked for, of either range", () => {
    const requested = ["172.30.15.9", "172.30.16.4"];
    expect(addressesOf([claim("a/one", { requested })])).toEqual({ "a/one": requested });
  });

  it("refuses an address outside its ranges and gives no other instead", () => {
    const { grants } = assign([claim("a/one", { requested: ["203.0.113.7"] })], ranges, 0);
    expect(grants.get("a/one")).toEqual({
      addresses: [],
      refused: [{ address: "203.0.113.7", reason: "not in a range of this load balancer" }],
    });
  });

  it("gives the usable one of two that were asked for", () => {
    const { grants } = assign([claim("a/one", { requested: ["203.0.113.7", "172.30.15.1"] })], ranges, 0);
    expect(grants.get("a/one")?.addresses).toEqual(["172.30.15.1"]);
    expect(grants.get("a/one")?.refused.map((refusal) => refusal.address)).toEqual(["203.0.113.7"]);
  });

  it.each(["172.30.15.0", "172.30.15.255", "172.30.15.256", "172.30.15", "::1", "example.org"])(
    "takes %s for no usable address",
    (address) => {
      expect(addressesOf([claim("a/one", { requested: [address] })])).toEqual({ "a/one": [] });
    },
  );

  it("leaves an address with who has it, even when an older Service asks for it", () => {
    const address = "172.30.15.1";
    const holder = claim("b/holder", {
      created: "2026-02-02T00:00:00Z",
      requested: [address],
      held: [address],
    });
    const { grants } = assign([claim("a/older", { requested: [address] }), holder], ranges, 0);
    expect(grants.get("b/holder")?.addresses).toEqual([address]);
    expect(grants.get("a/older")?.refused).toEqual([{ address, reason: "in use by another Service" }]);
  });

  it("gives the address of a Service that is gone to the one that waited for it", () => {
    expect(addressesOf([claim("a/waiting", { requested: ["172.30.15.1"] })])).toEqual({
      "a/waiting": ["172.30.15.1"],
    });
  });

  it("takes an address back when its Service asks for another", () => {
    const moved = claim("a/moved", { requested: ["172.30.15.2"], held: ["172.30.15.1"] });
    expect(addressesOf([moved, claim("b/next", { requested: ["172.30.15.1"] })])).toEqual({
      "a/moved": ["172.30.15.2"],
      "b/next": ["172.30.15.1"],
    });
  });

  it("goes on behind the last address given, so that a freed one comes back last", () => {
    const first = assign([claim("a/one")], ranges, 0);
    const second = assign([claim("b/two")], ranges, first.cursor);
    expect(second.grants.get("b/two")?.addresses).toEqual(["172.30.16.2"]);
  });

  it("leaves a Service pending when the range is used up", () => {
    const many = Array.from({ length: 7 }, (_, index) => claim(`a/${index}`));
    expect(addressesOf(many, 4)).toMatchObject({ "a/0": ["172.30.16.5"], "a/5": ["172.30.16.4"], "a/6": [] });
  });

  it("is settled: what it gave it gives again, and never one address to two", () => {
    const address = fc.constantFrom(
      "172.30.15.1",
      "172.30.15.2",
      "172.30.16.1",
      "172.30.16.3",
      "203.0.113.7",
    );
    const claims = fc.uniqueArray(
      fc.record({
        key: fc.constantFrom("a/1", "a/2", "b/1", "b/2", "c/1"),
        created: fc.constantFrom("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
        requested: fc.array(address, { maxLength: 2 }),
        held: fc.array(address, { maxLength: 2 }),
      }),
      { selector: (each) => each.key },
    );
    fc.assert(
      fc.property(claims, fc.nat(5), (given, cursor) => {
        const first = assign(given, ranges, cursor);
        const all = [...first.grants.values()].flatMap((grant) => grant.addresses);
        expect(new Set(all).size).toBe(all.length);
        const held = given.map((each) => ({ ...each, held: first.grants.get(each.key)?.addresses ?? [] }));
        expect(assign(held, ranges, first.cursor).grants).toEqual(first.grants);
      }),
    );
  });
});
