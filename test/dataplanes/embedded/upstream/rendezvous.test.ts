/** The choice of an endpoint by a key: balanced, stable, and with few moves. */
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { byKey } from "../../../../src/dataplanes/embedded/upstream/rendezvous.ts";
import type { Endpoint } from "../../../../src/plan/backend.ts";

const KEYS = Array.from({ length: 2_000 }, (_, index) => `user-${index}`);

const endpointSet = fc
  .uniqueArray(fc.tuple(fc.ipV4(), fc.integer({ min: 1, max: 65_535 })), {
    minLength: 2,
    maxLength: 40,
    selector: ([address, port]) => `${address} ${port}`,
  })
  .map((pairs) => pairs.map(([address, port]): Endpoint => ({ address, port })));

function chosen(endpoints: readonly Endpoint[], key: string): string {
  const [first] = byKey(endpoints, key);
  return `${first?.address} ${first?.port}`;
}

test("a key that moves had the endpoint that went, or has the one that came", () => {
  fc.assert(
    fc.property(endpointSet, fc.nat(), (endpoints, place) => {
      const gone = place % endpoints.length;
      const left = endpoints.toSpliced(gone, 1);
      const its = `${endpoints[gone]?.address} ${endpoints[gone]?.port}`;
      for (const key of KEYS.slice(0, 200)) {
        const before = chosen(endpoints, key);
        if (before !== its) expect(chosen(left, key)).toBe(before);
      }
    }),
  );
});

test("the order of the endpoints does not matter", () => {
  fc.assert(
    fc.property(endpointSet, (endpoints) => {
      const reversed = endpoints.toReversed();
      for (const key of KEYS.slice(0, 100)) expect(chosen(reversed, key)).toBe(chosen(endpoints, key));
    }),
  );
});

test("neighbouring pods get about as many of neighbouring keys", () => {
  for (const count of [2, 3, 10, 100]) {
    const endpoints = Array.from({ length: count }, (_, index) => ({
      address: `10.0.0.${index + 1}`,
      port: 8080,
    }));
    const share = new Map<string, number>();
    const keys = Array.from({ length: 1_000 * count }, (_, index) => `192.0.2.${index}`);
    for (const key of keys) {
      const at = chosen(endpoints, key);
      share.set(at, (share.get(at) ?? 0) + 1);
    }
    // Five standard deviations around a thousand keys each.
    expect(share.size).toBe(count);
    expect(Math.max(...share.values())).toBeLessThan(1_160);
    expect(Math.min(...share.values())).toBeGreaterThan(840);
  }
});

test("the tries of a request go to different endpoints, and keys of one endpoint to several next ones", () => {
  const endpoints = Array.from({ length: 10 }, (_, index) => ({ address: `10.0.0.${index}`, port: 80 }));
  const seconds = new Set<string>();
  for (const key of KEYS) {
    const order = byKey(endpoints, key);
    expect(new Set(order).size).toBe(3);
    if (order[0] === endpoints[0]) seconds.add(order[1]?.address ?? "");
  }
  expect(seconds.size).toBe(9);
});

test("thousands of endpoints, and keys of any text, have a choice", () => {
  const endpoints = Array.from({ length: 5_000 }, (_, index) => ({
    address: `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}`,
    port: 80,
  }));
  fc.assert(
    fc.property(fc.string({ unit: "binary", maxLength: 300 }), (key) => {
      const order = byKey(endpoints, key);
      expect(order).toHaveLength(3);
      expect(byKey(endpoints, key)).toEqual(order);
    }),
    { numRuns: 50 },
  );
});
