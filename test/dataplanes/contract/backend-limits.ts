import type { ServerResponse } from "node:http";
import { expect, test } from "vitest";
import type { BackendLimits } from "../../../src/plan/limits/backend-limits.ts";
import type { TenantLimits } from "../../../src/plan/tenant-limits.ts";
import { type Answer, ask } from "../support/http-peers.ts";
import { backend, forwardTo, gateway, host, listener, port, rule } from "../support/plan-builder.ts";
import type { CreateDataPlane, PlaneUnderTest } from "../support/plane-under-test.ts";
import { setStage } from "./stage.ts";

const http = port(80);
const shop = listener("shop", http, "shop.example");
const sites = [
  http,
  shop,
  host(shop, "shop.example", [
    rule({ path: "/own", action: forwardTo("b@own") }),
    rule({ path: "/", action: forwardTo("b") }),
  ]),
];
const TENANT: TenantLimits = { connections: 0, requests: 0, backendConnections: 0, bufferedBytes: 0 };

/** What a backend may have at a time. */
export function describeBackendLimits(create: CreateDataPlane): void {
  const stage = setStage(create);
  const start = async (
    limits: BackendLimits,
    ofTenant: Partial<TenantLimits> = {},
  ): Promise<PlaneUnderTest & { readonly held: ServerResponse[]; readonly at80: number }> => {
    const held: ServerResponse[] = [];
    const at = await stage.backends.http((_request, response) => {
      held.push(response);
    });
    const plane = await stage.start([
      { type: "gateway", id: "gw", gateway, tenantLimits: { ...TENANT, ...ofTenant } },
      ...sites,
      backend("b", [at], { limits }),
      backend("b@own", [at]),
    ]);
    return Object.assign(plane, { held, at80: plane.at(80) });
  };
  const get = (at: number, path = "/"): Promise<Answer> => ask(at, { host: "shop.example", path });
  const release = (held: ServerResponse[]): void => {
    for (const response of held.splice(0)) response.end("late");
  };

  test("requests beyond the limit get 503, and are served again when there is room", async () => {
    const { held, at80 } = await start({ requests: 2 });
    const first = [get(at80), get(at80)];
    await expect.poll(() => held.length, { timeout: 10_000 }).toBe(2);
    const refused = await get(at80);
    expect([refused.status, refused.headers["retry-after"]]).toEqual([503, "1"]);
    expect(refused.body).toMatch(/too many requests/);
    release(held);
    for (const { status } of await Promise.all(first)) expect(status).toBe(200);
    const again = get(at80);
    await expect.poll(() => held.length, { timeout: 10_000 }).toBe(1);
    release(held);
    expect((await again).status).toBe(200);
  });

  test("who reaches the same endpoints as another backend does not notice", async () => {
    const { held, at80 } = await start({ requests: 1 });
    const first = get(at80);
    await expect.poll(() => held.length, { timeout: 10_000 }).toBe(1);
    expect((await get(at80)).status).toBe(503);
    const others = [get(at80, "/own"), get(at80, "/own")];
    await expect.poll(() => held.length, { timeout: 10_000 }).toBe(3);
    release(held);
    for (const { status } of await Promise.all([first, ...others])) expect(status).toBe(200);
  });

  test("with one connection the others wait for it, as many as may", async () => {
    const { held, at80 } = await start({ connections: 1, pendingRequests: 1 });
    const first = get(at80);
    await expect.poll(() => held.length, { timeout: 10_000 }).toBe(1);
    const both = [get(at80), get(at80)];
    const refused = await Promise.race(both);
    expect(refused.status).toBe(503);
    expect(held.length).toBe(1);
    release(held);
    expect((await first).status).toBe(200);
    await expect.poll(() => held.length, { timeout: 10_000 }).toBe(1);
    release(held);
    expect((await Promise.all(both)).map(({ status }) => status).sort()).toEqual([200, 503]);
  });

  test("the limit of the tenant holds where it is smaller", async () => {
    const { held, at80 } = await start({ requests: 100, connections: 100 }, { requests: 1 });
    const first = get(at80);
    await expect.poll(() => held.length, { timeout: 10_000 }).toBe(1);
    expect((await get(at80)).status).toBe(503);
    release(held);
    expect((await first).status).toBe(200);
  });
}
