import { once } from "node:events";
import { createServer, request as requestHttp } from "node:http";
import { type ClientHttp2Stream, connect as connectHttp2 } from "node:http2";
import type { Server } from "node:net";
import { expect, test } from "vitest";
import { ask } from "../support/http-peers.ts";
import { backend, forwardTo, host, listener, port, rule } from "../support/plan-builder.ts";
import type { CreateDataPlane, PlaneUnderTest } from "../support/plane-under-test.ts";
import { setStage } from "./stage.ts";

const http = port(80);
const shop = listener("shop", http, "shop.example");
const IDLE_MS = 400;
const STEP_MS = 150;
const STEPS = 6;

/** A rule's limit for the time without a byte in either direction. */
export function describeIdle(create: CreateDataPlane): void {
  const stage = setStage(create);
  const start = (at: number): Promise<PlaneUnderTest> =>
    stage.start([
      http,
      shop,
      host(shop, "shop.example", [rule({ action: forwardTo("b", { timeouts: { idleMs: IDLE_MS } }) })]),
      backend("b", [at]),
    ]);

  test("a backend that says nothing is 504, and one that says something now and then is waited for", async () => {
    const at = await stage.backends.http((request, response) => {
      if (request.url === "/silent") return;
      let said = 0;
      const timer = setInterval(() => {
        if (said++ < STEPS) {
          response.write("x");
          return;
        }
        clearInterval(timer);
        response.end();
      }, STEP_MS);
    });
    const plane = await start(at);
    const begun = performance.now();
    const silent = await ask(plane.at(80), { host: "shop.example", path: "/silent" });
    expect(silent.status).toBe(504);
    expect(performance.now() - begun).toBeGreaterThan(IDLE_MS - 50);
    expect((await plane.record(({ status }) => status === 504)).reason).toBe("IdleTimeout");
    const slow = await ask(plane.at(80), { host: "shop.example", path: "/slow" });
    expect([slow.status, slow.body]).toEqual([200, "x".repeat(STEPS)]);
  });

  test("a body that comes now and then is waited for, and one that stops is 408", async () => {
    const plane = await start(await stage.backends.echo("b"));
    const upload = (): ClientHttp2Stream => {
      const session = connectHttp2(`http://127.0.0.1:${plane.at(80)}`);
      stage.onRelease(() => session.destroy());
      session.on("error", () => {});
      const stream = session.request({ ":method": "POST", ":authority": "shop.example" });
      return stream.on("error", () => {});
    };
    const steady = upload();
    for (let sent = 0; sent < STEPS; sent++) {
      steady.write("x");
      await new Promise((resolve) => setTimeout(resolve, STEP_MS));
    }
    steady.end();
    expect((await once(steady, "response"))[0]).toMatchObject({ ":status": 200 });
    const stopping = upload();
    stopping.write("x");
    expect((await once(stopping, "response"))[0]).toMatchObject({ ":status": 408 });
  });

  test("an answer that stops is cut off", async () => {
    const at = await stage.backends.http((_request, response) => void response.write("begun"));
    const plane = await start(at);
    const sent = requestHttp({ port: plane.at(80), host: "127.0.0.1", headers: { host: "shop.example" } });
    const [response] = await once(sent.end(), "response");
    const ending = new Promise<string>((resolve) => {
      response.on("error", () => resolve("cut off"));
      response.on("end", () => resolve("whole"));
    });
    response.resume();
    expect(await ending).toBe("cut off");
  });

  test("a WebSocket on which nothing happens is closed", async () => {
    const server: Server = createServer();
    server.on("upgrade", (_request, socket) => {
      socket.on("error", () => {});
      socket.write("HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
      socket.on("data", (bytes: Buffer) => socket.write(bytes));
    });
    const plane = await start(await stage.backends.listen(server));
    const upgrade = requestHttp({
      port: plane.at(80),
      host: "127.0.0.1",
      headers: { host: "shop.example", connection: "Upgrade", upgrade: "websocket" },
    });
    const [, socket] = await once(upgrade.end(), "upgrade");
    for (let sent = 0; sent < STEPS; sent++) {
      socket.write("x");
      await once(socket, "data");
      await new Promise((resolve) => setTimeout(resolve, STEP_MS));
    }
    expect(socket.readableEnded || socket.destroyed).toBe(false);
    const begun = performance.now();
    await new Promise((resolve) =>
      socket
        .on("error", () => {})
        .once("close", resolve)
        .resume(),
    );
    expect(performance.now() - begun).toBeLessThan(10_000);
  });
}
