import { connect } from "node:http2";
import { expect, test } from "vitest";
import type { HeaderEdit, Rule } from "../../../src/plan/rule.ts";
import { ask, type Seen, textOf } from "../support/http-peers.ts";
import { backend, forwardTo, host, listener, port, rule } from "../support/plan-builder.ts";
import type { CreateDataPlane, PlaneOptions, PlaneUnderTest } from "../support/plane-under-test.ts";
import { setStage } from "./stage.ts";

const http = port(80);
const shop = listener("shop", http, "shop.example");

/** What only the gateway, or a proxy that it trusts, may say. */
const forged: Readonly<Record<string, string>> = {
  proxy: "forged",
  "x-envoy-upstream-rq-timeout-ms": "forged",
  "x-envoy-retry-on": "forged",
  x_envoy_original_path: "forged",
  "x-forwarded-client-cert": "forged",
  x_forwarded_client_cert: "forged",
  x_forwarded_for: "forged",
  "x-forwarded_for": "forged",
  "x.forwarded.for": "forged",
  x_forwarded_proto: "forged",
  x_forwarded_host: "forged",
  x_forwarded_port: "forged",
  x_real_ip: "forged",
  x_request_id: "forged",
  content_length: "forged",
  transfer_encoding: "forged",
};
const vouching: Readonly<Record<string, string>> = {
  forwarded: "for=forged",
  "x-real-ip": "forged",
  "x-forwarded-for": "forged",
  "x-forwarded-host": "forged",
  "x-forwarded-port": "forged",
  "x-forwarded-prefix": "forged",
  "x-forwarded-proto": "forged",
  "x-forwarded-ssl": "forged",
  "x-forwarded-user": "forged",
};
const harmless: Readonly<Record<string, string>> = { x_custom: "1", "x-custom": "2", auth_token: "3" };

export function describeForgedFields(create: CreateDataPlane): void {
  const stage = setStage(create);
  const start = async (options: Partial<PlaneOptions> = {}): Promise<PlaneUnderTest> =>
    stage.start(
      [
        http,
        shop,
        host(shop, "shop.example", [rule({ path: "/", action: forwardTo("b") })]),
        backend("b", [await stage.backends.echo("b")]),
      ],
      options,
    );
  const forgedOf = (seen: Seen): readonly string[] =>
    Object.entries(seen.headers)
      .filter(([, value]) => value?.includes("forged") === true)
      .map(([name]) => name)
      .sort();

  test("nothing that a client forges reaches the backend, over HTTP/1.1 and HTTP/2", async () => {
    const plane = await start();
    const headers = { ...forged, ...vouching, ...harmless };
    const { seen } = await ask(plane.at(80), { host: "shop.example", headers });
    expect(forgedOf(seen)).toEqual([]);
    expect(seen.headers).toMatchObject({ ...harmless, "x-forwarded-for": "127.0.0.1" });

    const session = connect(`http://127.0.0.1:${plane.at(80)}`);
    stage.onRelease(() => session.destroy());
    const stream = session.request({ ":authority": "shop.example", ":path": "/", ...headers });
    const second = JSON.parse(await textOf(stream)) as Seen;
    expect(forgedOf(second)).toEqual([]);
    expect(second.headers).toMatchObject({ ...harmless, "x-forwarded-for": "127.0.0.1" });
  });

  test("what a route sets or removes cannot be said by a client under a twin of its name", async () => {
    const requestHeaders = [
      { op: "set", name: "x-user", value: "nobody" },
      { op: "remove", name: "x-debug-mode" },
      { op: "add", name: "x-tag-list", value: "b" },
    ] as const;
    const wild = listener("wild", http, "*.wild.example");
    const rules = [rule({ action: forwardTo("b", { filters: { requestHeaders } }) })];
    const plane = await stage.start([
      http,
      shop,
      wild,
      host(shop, "shop.example", rules),
      host(wild, "*.wild.example", rules),
      backend("b", [await stage.backends.echo("b")]),
    ]);
    for (const name of ["shop.example", "SHOP.example", "shop.example.", "a.wild.example"]) {
      const { seen } = await ask(plane.at(80), {
        host: name,
        headers: { x_user: "forged", "x-debug_mode": "forged", x_tag_list: "a", x_custom: "1" },
      });
      expect(forgedOf(seen), name).toEqual([]);
      expect(seen.headers, name).toMatchObject({ "x-user": "nobody", x_tag_list: "a", x_custom: "1" });
    }
  });

  test("a route that sets and removes as many fields as it may, with the longest names, is served", async () => {
    const name = (index: number): string => `${"a-".repeat(125)}${index}`;
    const edits = (op: "set" | "remove", from: number): HeaderEdit[] =>
      Array.from({ length: 16 }, (_, index) => ({ op, name: name(from + index), value: "1" }));
    const requestHeaders = [...edits("set", 100), ...edits("remove", 200)];
    const filters = { requestHeaders: [...edits("set", 300), ...edits("remove", 400)] };
    const plane = await stage.start([
      http,
      shop,
      host(shop, "shop.example", [
        rule({
          action: forwardTo([{ backend: "b", weight: 1, filters }], { filters: { requestHeaders } }),
        }),
      ]),
      backend("b", [await stage.backends.echo("b")]),
    ]);
    const twin = name(200).replaceAll("-", "_");
    const { seen } = await ask(plane.at(80), { host: "shop.example", headers: { [twin]: "forged" } });
    expect(forgedOf(seen)).toEqual([]);
    expect(seen.headers[name(300)]).toBe("1");
  });

  test("rules see the fields that the backend gets, not those that end at the gateway", async () => {
    const when = (name: string, value: string, to: string): Rule => ({
      ...rule({ action: forwardTo(to) }),
      match: { headers: [{ name, type: "exact", value }], query: [] },
    });
    const plane = await stage.start([
      http,
      shop,
      host(shop, "shop.example", [
        when("x-canary", "yes", "canary"),
        when("x-forwarded-proto", "https", "https"),
        when("x-real-ip", "10.0.0.1", "inside"),
        when("x-forwarded-for", "127.0.0.1", "plain"),
      ]),
      ...(await Promise.all(
        ["canary", "https", "inside", "plain"].map(async (name) =>
          backend(name, [await stage.backends.echo(name)]),
        ),
      )),
    ]);
    const backendFor = async (headers: Readonly<Record<string, string>>): Promise<string> =>
      (await ask(plane.at(80), { host: "shop.example", headers })).seen.backend;
    expect(await backendFor({ "x-canary": "yes" })).toBe("canary");
    expect(await backendFor({ "x-canary": "yes", connection: "close, X-Canary" })).toBe("plain");
    expect(await backendFor({ "x-forwarded-proto": "https" })).toBe("plain");
    expect(await backendFor({ "x-real-ip": "10.0.0.1" })).toBe("plain");
    expect(await backendFor({ "x-forwarded-for": "10.0.0.1" })).toBe("plain");
  });

  test("a trusted proxy in front vouches for its client, and still cannot steer the gateway", async () => {
    const plane = await start({ trustedHops: 1 });
    const { seen } = await ask(plane.at(80), {
      host: "shop.example",
      headers: { ...forged, "x-forwarded-proto": "https", "x-forwarded-prefix": "/shop" },
    });
    expect(forgedOf(seen)).toEqual([]);
    expect(seen.headers).toMatchObject({ "x-forwarded-proto": "https", "x-forwarded-prefix": "/shop" });
  });
}
