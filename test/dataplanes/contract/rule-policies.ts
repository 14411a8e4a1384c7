import { expect, test } from "vitest";
import type { Rule } from "../../../src/plan/rule.ts";
import { ask } from "../support/http-peers.ts";
import { lastingPort } from "../support/lasting-port.ts";
import { backend, forwardTo, host, listener, port, rule } from "../support/plan-builder.ts";
import type { CreateDataPlane } from "../support/plane-under-test.ts";
import { setStage } from "./stage.ts";

const http = port(80);
const shop = listener("shop", http, "shop.example");
const wild = listener("wild", http, "*.wild.example");
/** Every way to write a name that could lead past the settings of its rule. */
const NAMES = ["shop.example", "SHOP.example", "shop.example.", "a.wild.example", "A.B.WILD.example."];

/** What policies put into rules beyond what routes can say. */
export function describeRulePolicies(create: CreateDataPlane): void {
  const stage = setStage(create);

  test("only requests of the named methods are tried again, however the host is written", async () => {
    const seen: string[] = [];
    const at = await stage.backends.http((request, response) => {
      seen.push(request.method ?? "");
      request.resume().on("end", () => response.writeHead(503).end());
    });
    const retry = { attempts: 2, codes: [503], methods: ["GET", "PUT"], backoffMs: 10 };
    const action = forwardTo("b", { retry });
    const plane = await stage.start([
      http,
      shop,
      wild,
      host(shop, "shop.example", [rule({ action })]),
      host(wild, "*.wild.example", [rule({ action })]),
      backend("b", [at]),
    ]);
    const triesOf = async (method: string, name: string): Promise<number> => {
      seen.length = 0;
      const body = method === "GET" ? undefined : "x";
      const asked = { host: name, method, ...(body === undefined ? {} : { body }) };
      expect((await ask(plane.at(80), asked)).status).toBe(503);
      return seen.length;
    };
    for (const name of NAMES) {
      expect(await triesOf("GET", name), name).toBe(3);
      expect(await triesOf("PUT", name), name).toBe(3);
      expect(await triesOf("POST", name), name).toBe(1);
    }
  });

  test("methods without retries still find another endpoint than one that cannot be reached", async () => {
    const plane = await stage.start([
      http,
      shop,
      host(shop, "shop.example", [
        rule({ action: forwardTo("b", { retry: { attempts: 1, codes: [], methods: ["GET"] } }) }),
      ]),
      backend("b", [await lastingPort(), await stage.backends.echo("b")]),
    ]);
    for (let round = 0; round < 6; round++) {
      const { status } = await ask(plane.at(80), { host: "shop.example", method: "POST", body: "x" });
      expect(status).toBe(200);
    }
  });

  test("a rule that matches one method has the retries of that method", async () => {
    let calls = 0;
    const at = await stage.backends.http((request, response) => {
      calls++;
      request.resume().on("end", () => response.writeHead(503).end());
    });
    const action = forwardTo("b", { retry: { attempts: 1, codes: [503], methods: ["PUT"], backoffMs: 10 } });
    const of = (method: string): Rule => {
      const each = rule({ action });
      return { ...each, match: { ...each.match, method } };
    };
    const plane = await stage.start([
      http,
      shop,
      host(shop, "shop.example", [of("PUT"), of("POST")]),
      backend("b", [at]),
    ]);
    await ask(plane.at(80), { host: "shop.example", method: "PUT", body: "x" });
    expect(calls).toBe(2);
    await ask(plane.at(80), { host: "shop.example", method: "POST", body: "x" });
    expect(calls).toBe(3);
  });
}
