import { expect, test } from "vitest";
import type { PersistencePolicy } from "../../../src/plan/rule.ts";
import { type Answer, ask } from "../support/http-peers.ts";
import { backend, forwardTo, host, listener, port, rule } from "../support/plan-builder.ts";
import type { CreateDataPlane, PlaneUnderTest } from "../support/plane-under-test.ts";
import { setStage } from "./stage.ts";

const http = port(80);
const shop = listener("shop", http, "shop.example");
const wild = listener("wild", http, "*.wild.example");
const action = forwardTo("b");
const sites = [
  shop,
  wild,
  host(shop, "shop.example", [rule({ action })]),
  host(wild, "*.wild.example", [rule({ action })]),
];
const cookie: PersistencePolicy = { type: "cookie", name: "cart", permanent: false };
const header: PersistencePolicy = { type: "header", name: "x-session", permanent: false };

/** What a client sends back: the name and value of a cookie, without its attributes. */
function pairOf(answer: Answer): string | undefined {
  return answer.headers["set-cookie"]?.[0]?.split(";")[0];
}

/** Sessions stay on their endpoint while it is there, and reach no other address than endpoints. */
export function describeSessions(create: CreateDataPlane): void {
  const stage = setStage(create);
  const start = async (
    persistence: PersistencePolicy,
  ): Promise<PlaneUnderTest & { readonly endpoints: readonly number[] }> => {
    const endpoints = await Promise.all(["e0", "e1", "e2", "e3"].map((name) => stage.backends.echo(name)));
    const plane = await stage.start([http, ...sites, backend("b", endpoints, { persistence })]);
    return Object.assign(plane, { endpoints });
  };
  const get = (
    plane: PlaneUnderTest,
    headers: Record<string, string> = {},
    name = "shop.example",
  ): Promise<Answer> => ask(plane.at(80), { host: name, headers });
  const placesOf = async (
    plane: PlaneUnderTest,
    headers: Record<string, string>,
    name?: string,
  ): Promise<ReadonlySet<string>> => {
    const places = new Set<string>();
    for (let count = 0; count < 12; count++) places.add((await get(plane, headers, name)).seen.backend);
    return places;
  };

  test("the first answer sets a cookie, and whoever sends it back stays", async () => {
    const plane = await start(cookie);
    const first = await get(plane);
    const [set = ""] = first.headers["set-cookie"] ?? [];
    expect(set).toMatch(/^cart="?[^";]+"?; /);
    expect(set).toMatch(/; Path=\//);
    expect(set).toMatch(/; HttpOnly/);
    expect(set).not.toMatch(/Max-Age|Secure/);
    const sent = { cookie: `theme=dark; ${pairOf(first)}` };
    expect(await placesOf(plane, sent)).toEqual(new Set([first.seen.backend]));
    expect((await get(plane, sent)).headers["set-cookie"]).toBeUndefined();
    expect((await placesOf(plane, {})).size).toBeGreaterThan(1);
  });

  test("a session holds however the host is written, and under a wildcard", async () => {
    const plane = await start(cookie);
    for (const name of ["SHOP.example", "shop.example.", "a.wild.example", "A.Wild.Example"]) {
      const first = await get(plane, {}, name);
      const sent = { cookie: pairOf(first) ?? "" };
      expect(await placesOf(plane, sent, name)).toEqual(new Set([first.seen.backend]));
    }
  });

  test("a session goes elsewhere when its endpoint goes, and stays there", async () => {
    const plane = await start(cookie);
    const first = await get(plane);
    const left = plane.endpoints.filter((_port, index) => `e${index}` !== first.seen.backend);
    await plane.apply({ upserts: [backend("b", left, { persistence: cookie })], removes: [] });
    const next = await get(plane, { cookie: pairOf(first) ?? "" });
    expect(next.status).toBe(200);
    expect(next.seen.backend).not.toBe(first.seen.backend);
    const sent = { cookie: pairOf(next) ?? "" };
    expect(await placesOf(plane, sent)).toEqual(new Set([next.seen.backend]));
  });

  test("a session stays when endpoints come", async () => {
    const plane = await start(cookie);
    const first = await get(plane);
    const more = [...plane.endpoints, await stage.backends.echo("e4"), await stage.backends.echo("e5")];
    await plane.apply({ upserts: [backend("b", more, { persistence: cookie })], removes: [] });
    const sent = { cookie: pairOf(first) ?? "" };
    expect(await placesOf(plane, sent)).toEqual(new Set([first.seen.backend]));
  });

  test("a header does the same for clients without cookies", async () => {
    const plane = await start(header);
    const first = await get(plane);
    const token = String(first.headers["x-session"]);
    expect(token).not.toBe("undefined");
    expect(await placesOf(plane, { "x-session": token })).toEqual(new Set([first.seen.backend]));
  });

  test("no token leads to an address that is not an endpoint", async () => {
    const secret = await stage.backends.echo("secret");
    const plane = await start(cookie);
    const address = Buffer.from(`127.0.0.1:${secret}`);
    // As Envoy writes them: field 1 is the address.
    const framed = Buffer.concat([Buffer.of(0x0a, address.length), address]);
    const tokens = [
      address.toString("base64"),
      framed.toString("base64"),
      String(address),
      `${secret}`,
      "../..",
      "%00",
      "",
      "x".repeat(4_000),
    ];
    for (const token of tokens) {
      const answer = await get(plane, { cookie: `cart=${token}; cart="${token}"` });
      expect(answer.status).toBe(200);
      expect(answer.seen.backend).toMatch(/^e\d$/);
    }
  });

  test("a session that is permanent has an age, and one that is over begins anew", async () => {
    const plane = await start({ ...cookie, permanent: true, absoluteTimeoutMs: 1_000 });
    const first = await get(plane);
    expect(first.headers["set-cookie"]?.[0]).toMatch(/Max-Age=1;/);
    const sent = { cookie: pairOf(first) ?? "" };
    const deadline = Date.now() + 10_000;
    let next = await get(plane, sent);
    while (next.headers["set-cookie"] === undefined && Date.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      next = await get(plane, sent);
    }
    expect(pairOf(next)).toMatch(/^cart=/);
  });

  test("a policy that comes and goes holds and does not, for the same backend", async () => {
    const plane = await start(cookie);
    await plane.apply({ upserts: [backend("b", plane.endpoints)], removes: [] });
    expect((await get(plane)).headers["set-cookie"]).toBeUndefined();
    await plane.apply({ upserts: [backend("b", plane.endpoints, { persistence: header })], removes: [] });
    const answer = await get(plane);
    expect(answer.headers["set-cookie"]).toBeUndefined();
    expect(answer.headers["x-session"]).toBeDefined();
  });
}
