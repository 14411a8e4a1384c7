import { expect, test } from "vitest";
import type { HeaderEdit } from "../../../src/plan/rule.ts";
import { ask } from "../support/http-peers.ts";
import { backend, host, listener, port, rule } from "../support/plan-builder.ts";
import type { CreateDataPlane } from "../support/plane-under-test.ts";
import { setStage } from "./stage.ts";

const http = port(80);
const shop = listener("shop", http, "shop.example");

/** Edits of one field by a route, its backend and policies: what comes last is what holds. */
export function describeEditOrder(create: CreateDataPlane): void {
  const stage = setStage(create);
  const set = (value: string): HeaderEdit => ({ op: "set", name: "x-rank", value });
  const remove: HeaderEdit = { op: "remove", name: "x-rank" };

  test.each([
    ["a set behind removals", [remove], [remove, set("last")], "last"],
    ["the last of several sets", [set("first")], [set("second"), set("last")], "last"],
    ["a removal behind sets", [set("first")], [set("second"), remove], undefined],
  ] as const)("%s of the same field holds", async (_, ofRule, ofBackend, expected) => {
    const at = await stage.backends.http((request, response) => {
      response.setHeader("x-rank", "of the backend");
      response.end(JSON.stringify({ headers: request.headers }));
    });
    const edits = (list: readonly HeaderEdit[]): Record<string, readonly HeaderEdit[]> => ({
      requestHeaders: list,
      responseHeaders: list,
    });
    const plane = await stage.start([
      http,
      shop,
      host(shop, "shop.example", [
        rule({
          action: {
            type: "forward",
            backends: [{ backend: "b", weight: 1, filters: edits(ofBackend) }],
            filters: edits(ofRule),
            timeouts: {},
          },
        }),
      ]),
      backend("b", [at]),
    ]);
    const answer = await ask(plane.at(80), { host: "shop.example", headers: { "x-rank": "of the client" } });
    expect(answer.headers["x-rank"]).toBe(expected);
    expect(answer.seen.headers["x-rank"]).toBe(expected);
  });
}
