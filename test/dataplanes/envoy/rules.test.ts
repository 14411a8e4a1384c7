/** Random rules and requests: Envoy takes the rule that the matching code takes. */

import { afterAll, describe, expect, test } from "vitest";
import { RoutingTable } from "../../../src/matching/routing-table.ts";
import type { HostItem } from "../../../src/plan/plan.ts";
import type { PathMatch, Rule, ValueMatch } from "../../../src/plan/rule.ts";
import { createEnvoy } from "../support/envoy-plane.ts";
import { ask } from "../support/http-peers.ts";
import { host, listener, port, rule } from "../support/plan-builder.ts";
import { PlaneUnderTest } from "../support/plane-under-test.ts";
import { seeded } from "../support/sockets.ts";

const HOSTS = 12;
const RULES = 13;
const REQUESTS = 400;

const http = port(80);
const random = seeded(20_261_115);
const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
const maybe = (chance: number): boolean => random() < chance;

const paths = ["/", "/a", "/a/", "/a/b", "/ab", "/a/b/c", "/c.d", "/c/d/"];
const patterns = (): readonly string[] => ["/a.*", "/[ab]/?b?", "/c.d", ".*", "/(a|ab)", LARGE];
const values = ["1", "2", "one two", "[x]", "1, 2"];
// Larger than what Envoy takes unless it is told to.
const LARGE = `/(${Array.from({ length: 40 }, (_, at) => `word${at}`).join("|")}|ab)`;

function randomPath(): PathMatch | undefined {
  if (maybe(0.15)) return undefined;
  const type = pick(["exact", "prefix", "prefix", "regex"] as const);
  return { type, value: type === "regex" ? pick(patterns()) : pick(paths) };
}

function randomValues(names: readonly string[]): readonly ValueMatch[] {
  return names
    .filter(() => maybe(0.2))
    .map((name) =>
      maybe(0.5)
        ? { type: "exact", name, value: pick(values) }
        : { type: "regex", name, value: pick(["[0-9]", "o.*", ".+"]) },
    );
}

function randomRule(status: number): Rule {
  const path = randomPath();
  return {
    ...rule({ action: { type: "respond", status, reason: "found" } }),
    match: {
      ...(path === undefined ? {} : { path }),
      ...(maybe(0.2) ? { method: pick(["GET", "POST"]) } : {}),
      headers: randomValues(["x-a", "x-b"]),
      query: randomValues(["q", "r"]),
    },
  };
}

describe("rules on Envoy", () => {
  let plane: PlaneUnderTest | undefined;
  afterAll(() => plane?.close());

  test(`${REQUESTS} random requests meet the rule that the routing table finds`, async () => {
    const all = listener("all", http, "");
    const hosts: readonly HostItem[] = [
      "",
      "*.example",
      ...Array.from({ length: HOSTS }, (_, at) => `h${at}.example`),
    ].map((name, at) =>
      host(
        all,
        name,
        Array.from({ length: RULES }, (_, index) => randomRule(405 + at * RULES + index)),
      ),
    );
    const items = [http, all, ...hosts];
    plane = await PlaneUnderTest.start((options) => createEnvoy(options), items);
    const table = new RoutingTable();
    table.apply({ upserts: items, removes: [] });
    const seen = new Set<number>();
    for (let count = 0; count < REQUESTS; count++) {
      const authority = pick([
        "other.test",
        "x.example",
        ...Array.from({ length: HOSTS }, (_, at) => `h${at}.example`),
      ]);
      const method = pick(["GET", "POST"]);
      const path = pick([...paths, "/a/c", "/abc", "/cxd", "/z"]);
      const query = pick([
        "",
        "q=1",
        "q=2&r=one",
        "r=1&q=1&q=2",
        "q",
        "q=one+two",
        "q=on%65%20two",
        "r=%5bx%5D",
      ]);
      const headers: Record<string, string | string[]> = {};
      for (const name of ["x-a", "x-b"]) {
        if (maybe(0.5)) headers[name] = maybe(0.2) ? [pick(values), pick(values)] : pick(values);
      }
      const header = (name: string): string | undefined =>
        headers[name] === undefined ? undefined : [headers[name]].flat().join(", ");
      const request = { method, path, query, header };
      const found = table.matchRule(all.id, authority, request);
      const wanted = found?.action.type === "respond" ? found.action.status : 404;
      const target = query === "" ? path : `${path}?${query}`;
      const { status } = await ask(plane.at(80), { host: authority, method, path: target, headers });
      expect(`${method} ${authority}${target} ${JSON.stringify(headers)}: ${status}`).toBe(
        `${method} ${authority}${target} ${JSON.stringify(headers)}: ${wanted}`,
      );
      seen.add(status);
    }
    // The rules are not all alike: many of them have been met.
    expect(seen.size).toBeGreaterThan(30);
  });
});
