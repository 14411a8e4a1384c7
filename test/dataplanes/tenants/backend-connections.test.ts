/** The connections of one backend at their limit, in the embedded data plane. */

import { once } from "node:events";
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { describe, expect, test } from "vitest";
import { createEmbeddedDataPlane } from "../../../src/dataplanes/embedded/embedded-data-plane.ts";
import type { BackendItem } from "../../../src/plan/backend.ts";
import { DEFAULT_TENANT_LIMITS } from "../../../src/plan/tenant-limits.ts";
import { type Stage, setStage } from "../contract/stage.ts";
import { ask } from "../support/http-peers.ts";
import { backend, forwardTo, gateway, host, listener, port, rule } from "../support/plan-builder.ts";
import type { PlaneUnderTest } from "../support/plane-under-test.ts";

const http = port(80);
const shop = listener("shop", http, "shop.example");

describe("connections of one backend", () => {
  const stage = setStage((options) => createEmbeddedDataPlane({ ...options, workers: 0 }));
  const start = (item: BackendItem): Promise<PlaneUnderTest> => startWith(stage, item);

  test("are shared by its endpoints: an idle one makes room for another's", async () => {
    const ends = [await stage.backends.echo("one"), await stage.backends.echo("two")];
    const plane = await start(backend("b", ends));
    const served: string[] = [];
    for (let count = 0; count < 6; count++) {
      const answer = await ask(plane.at(80), { host: "shop.example" });
      expect(answer.status).toBe(200);
      served.push(answer.seen.backend);
    }
    expect(new Set(served)).toEqual(new Set(["one", "two"]));
  });

  test("are shared by both protocols", async () => {
    const answering = createServer((_request, response) => void response.end("h2"));
    stage.onRelease(() => answering.close());
    answering.listen(0, "127.0.0.1");
    await once(answering, "listening");
    const { port: h2c } = answering.address() as AddressInfo;
    const plane = await start(backend("b", [h2c], { protocol: "h2c" }));
    for (let count = 0; count < 3; count++) {
      expect((await ask(plane.at(80), { host: "shop.example" })).body).toBe("h2");
    }
    await plane.apply({ upserts: [backend("b", [await stage.backends.echo("one")])], removes: [] });
    expect((await ask(plane.at(80), { host: "shop.example" })).status).toBe(200);
  });

  test("are counted until a WebSocket is over, and whoever waits for one is refused in time", async () => {
    const at = await stage.sockets.serve((socket) => {
      socket.on("end", () => socket.end());
      socket.once("data", (bytes) => {
        if (!/upgrade/i.test(String(bytes))) socket.end("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        else
          socket.write(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
          );
      });
    });
    const plane = await start(backend("b", [at]));
    const client = await stage.sockets.connect(plane.at(80));
    client.write("GET / HTTP/1.1\r\nHost: shop.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    expect(String(await once(client, "data"))).toMatch(/^HTTP\/1\.1 101/);

    expect((await ask(plane.at(80), { host: "shop.example" })).status).toBe(503);
    expect((await plane.record(({ status }) => status === 503)).reason).toBe("BackendRefused");
    client.destroy();
    const status = async (): Promise<number> => (await ask(plane.at(80), { host: "shop.example" })).status;
    await expect.poll(status, { timeout: 10_000 }).toBe(200);
  });
});

function startWith(stage: Stage, item: BackendItem): Promise<PlaneUnderTest> {
  return stage.start(
    [
      {
        type: "gateway",
        id: "gateway",
        gateway,
        tenantLimits: { ...DEFAULT_TENANT_LIMITS, backendConnections: 1 },
      },
      http,
      shop,
      host(shop, "shop.example", [rule({ action: forwardTo(item.id) })]),
      item,
    ],
    { limits: { backendResponseTimeoutMs: 400 } },
  );
}
