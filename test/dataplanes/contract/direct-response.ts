import { expect, test } from "vitest";
import type { GuardCheck } from "../../../src/plan/guard.ts";
import type { RespondAction } from "../../../src/plan/rule.ts";
import { type Answer, ask } from "../support/http-peers.ts";
import { guard, host, listener, port, rule } from "../support/plan-builder.ts";
import type { CreateDataPlane, PlaneUnderTest } from "../support/plane-under-test.ts";
import { setStage } from "./stage.ts";

const http = port(80);
const shop = listener("shop", http, "shop.example");
const wild = listener("wild", http, "*.wild.example");

const PAGE = "<h1>Back soon, 100%: %REQ(:path)% {{x}} für alle</h1>\n";
const later: RespondAction = {
  type: "respond",
  status: 503,
  reason: "a policy answers in place of the route",
  content: { type: "text/html; charset=utf-8", text: PAGE, retryAfterSeconds: 300 },
};

const webSocket = {
  connection: "Upgrade",
  upgrade: "websocket",
  "sec-websocket-version": "13",
  "sec-websocket-key": "bWVyZ2V3YXkgb3ZlciBoMg==",
};

/** Answers that a policy puts in the place of rules. */
export function describeDirectResponse(create: CreateDataPlane): void {
  const stage = setStage(create);
  const start = (action: RespondAction, check?: GuardCheck): Promise<PlaneUnderTest> => {
    const rules = [rule({ action, ...(check === undefined ? {} : { guards: ["g"] }) })];
    const hosts = [host(shop, "shop.example", rules), host(wild, "*.wild.example", rules)];
    return stage.start([http, shop, wild, ...hosts, ...(check === undefined ? [] : [guard("g", check)])]);
  };
  const get = (plane: PlaneUnderTest, name: string, more = {}): Promise<Answer> =>
    ask(plane.at(80), { host: name, ...more });

  test("the text, its type and Retry-After are those of the policy, however the host is written", async () => {
    const plane = await start(later);
    for (const name of [
      "shop.example",
      "SHOP.example",
      "shop.example.",
      "a.wild.example",
      "B.WILD.example",
    ]) {
      const { status, body, headers } = await get(plane, name);
      expect([status, body], name).toEqual([503, PAGE]);
      expect(headers).toMatchObject({
        "content-type": "text/html; charset=utf-8",
        "content-length": String(Buffer.byteLength(PAGE)),
        "retry-after": "300",
        "cache-control": "no-store",
      });
    }
    expect(await plane.record(({ status }) => status === 503)).toMatchObject({ reason: "DirectResponse" });
  });

  test("the largest text arrives whole, and no text is an answer without a type", async () => {
    const text = "é".repeat(2048);
    const plane = await start({ ...later, status: 200, content: { type: "text/plain", text } });
    expect(await get(plane, "shop.example")).toMatchObject({ status: 200, body: text });
    const empty: RespondAction = { ...later, status: 410, content: { type: "text/plain", text: "" } };
    await plane.apply({ upserts: [host(shop, "shop.example", [rule({ action: empty })])], removes: [] });
    const { status, body, headers } = await get(plane, "shop.example");
    expect([status, body, headers["content-type"]]).toEqual([410, "", undefined]);
  });

  test("HEAD has the header alone; POST, WebSockets and HTTP/2 are answered, too", async () => {
    const plane = await start(later);
    const head = await get(plane, "shop.example", { method: "HEAD" });
    expect([head.status, head.body, head.headers["retry-after"]]).toEqual([503, "", "300"]);
    const posted = await get(plane, "shop.example", { method: "POST", body: "x".repeat(1000) });
    expect([posted.status, posted.body]).toEqual([503, PAGE]);
    expect((await get(plane, "SHOP.example", { headers: webSocket })).status).toBe(503);
    const two = await stage.askHttp2(plane.at(80), {});
    expect([two[":status"], two["content-type"]]).toEqual([503, "text/html; charset=utf-8"]);
  });

  test("clients of gRPC get a status, and nothing of the text", async () => {
    const plane = await start(later);
    const { status, headers, body } = await get(plane, "shop.example", {
      method: "POST",
      headers: { "content-type": "application/grpc" },
    });
    expect([status, headers["grpc-status"], body]).toEqual([200, "14", ""]);
    expect(JSON.stringify(headers)).not.toContain("Back");
  });

  test("guards come first, whatever the protocol and however the host is written", async () => {
    const plane = await start(later, { type: "addresses", deny: ["127.0.0.1/32"] });
    for (const name of ["shop.example", "SHOP.example.", "a.wild.example", "A.WILD.example"]) {
      expect((await get(plane, name)).status, name).toBe(403);
      expect((await get(plane, name, { headers: webSocket })).status, name).toBe(403);
      expect((await stage.askHttp2(plane.at(80), { ":authority": name }))[":status"], name).toBe(403);
    }
    const grpc = await get(plane, "shop.example", { headers: { "content-type": "application/grpc" } });
    expect(grpc.headers["grpc-status"]).toBe("7");
    expect((await get(plane, "shop.example", { from: "127.0.0.2" })).status).toBe(503);
  });
}
