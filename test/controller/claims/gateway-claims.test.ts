import { describe, expect, test } from "vitest";
import type { ClaimedName } from "../../../src/api/hostname-claims.ts";
import { GatewayClaims } from "../../../src/controller/claims/gateway-claims.ts";
import type { UsedHostname } from "../../../src/engine/listeners/claims.ts";

const [MONDAY, TUESDAY, FRIDAY] = ["2026-06-01T00:00:00Z", "2026-06-02T00:00:00Z", "2026-06-05T00:00:00Z"];

function claim(hostname: string, ...holders: readonly string[]): UsedHostname {
  const owners = holders.map((namespace) => `ListenerSet/${namespace}/web`);
  return { gateway: "Gateway/infra/gw", hostname, holders: owners, wanted: [] };
}

function bookOf(names: Readonly<Record<string, string>>): GatewayClaims {
  const book = new GatewayClaims((hostname) => `ref ${hostname}`);
  for (const [hostname, holder] of Object.entries(names))
    book.update(hostname, claim(hostname, holder), MONDAY);
  return book;
}

function allNames(book: GatewayClaims): Readonly<Record<string, ClaimedName>> {
  const shards = Array.from({ length: book.shards }, (_, shard) => book.namesOf(shard));
  return Object.assign({}, ...shards) as Record<string, ClaimedName>;
}

describe("the claims of a Gateway", () => {
  test("tell who has a name since when, and who had it before and why no more", () => {
    const book = bookOf({ "a.test": "ant" });
    const lost = { ...claim("a.test", "bee"), wanted: ["ListenerSet/ant/web"] };
    book.update("a.test", { ...lost, transfer: { namespace: "bee" } }, TUESDAY);
    book.update("a.test", claim("a.test"), FRIDAY);
    expect(allNames(book)["a.test"]).toEqual({
      reference: "ref a.test",
      namespaces: [],
      history: [
        { owner: "ListenerSet/bee/web", since: TUESDAY, until: FRIDAY, end: "Released" },
        { owner: "ListenerSet/ant/web", since: MONDAY, until: TUESDAY, end: "Transferred" },
      ],
    });
  });

  test("keep at most eight holders of before, the last ones", () => {
    const book = bookOf({});
    for (let turn = 0; turn < 20; turn++) book.update("a.test", claim("a.test", `team-${turn}`), MONDAY);
    const { history = [] } = allNames(book)["a.test"] ?? {};
    expect(history.map(({ owner }) => owner.split("/")[1])).toEqual(
      Array.from({ length: 8 }, (_, back) => `team-${18 - back}`),
    );
  });

  test("let a wildcard hold what is below it, but for names that others use", () => {
    const book = bookOf({ "*.a.test": "ant", "x.a.test": "bee", "y.a.test": "ant", "a.test": "cat" });
    expect(allNames(book)["*.a.test"]?.except).toEqual({ "x.a.test": ["bee"] });
    book.update("x.a.test", undefined, TUESDAY);
    expect(allNames(book)["*.a.test"]?.except).toEqual({});
  });

  test("let a wildcard hold nothing but itself where others use many names below it", () => {
    const others = Array.from({ length: 33 }, (_, at) => [`n${at}.a.test`, "bee"]);
    const names = allNames(bookOf({ "*.a.test": "ant", ...Object.fromEntries(others) }));
    expect(names["*.a.test"]).toMatchObject({ namespaces: ["ant"] });
    expect(names["*.a.test"]).not.toHaveProperty("except");
  });

  test("of 2,500 tenants with four names each are in shards that an API server takes", () => {
    const names = Array.from({ length: 10_000 }, (_, at) => [
      `service-${at}.team-${at % 2500}.apps.example.com`,
      `team-${at % 2500}`,
    ]);
    const book = bookOf(Object.fromEntries(names));
    expect(book.unheld).toBe(0);
    expect(book.shards).toBeLessThan(16);
    for (let shard = 0; shard < book.shards; shard++)
      expect(JSON.stringify(book.namesOf(shard)).length).toBeLessThan(400_000);
    book.takeDirty();
    book.update("service-5000.team-0.apps.example.com", undefined, TUESDAY);
    expect(book.takeDirty()).toHaveLength(1);
  });

  test("say how many names there is no room for, and hold them when there is", () => {
    const long = (at: number): string =>
      `${String(at).padStart(60, "a")}.${"b".repeat(63)}.${"c".repeat(60)}.test`;
    const book = bookOf({});
    const count = 64 * 600;
    for (let at = 0; at < count; at++) book.update(long(at), claim(long(at), "ant"), MONDAY);
    expect(book.shards).toBe(64);
    expect(book.unheld).toBeGreaterThan(0);
    expect(Object.keys(allNames(book)).length + book.unheld).toBe(count);
  });

  test("go on from what another leader has written", () => {
    const first = bookOf({ "a.test": "ant", "*.b.test": "bee" });
    first.update("a.test", claim("a.test", "cat"), TUESDAY);
    const second = new GatewayClaims((hostname) => `ref ${hostname}`);
    second.load(new Map([[0, first.namesOf(0)]]));
    for (const [name, holder] of [["a.test", "cat"] as const, ["*.b.test", "bee"] as const])
      second.update(name, claim(name, holder), FRIDAY);
    expect(second.takeDirty()).toEqual([]);
    expect(second.namesOf(0)).toEqual(first.namesOf(0));
  });
});
