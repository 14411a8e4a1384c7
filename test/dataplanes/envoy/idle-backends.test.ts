/** Envoy's kept connections to backends. */

import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { createEnvoy } from "../support/envoy-plane.ts";
import { ask } from "../support/http-peers.ts";
import { backend, forwardTo, host, listener, port, rule } from "../support/plan-builder.ts";
import { PlaneUnderTest } from "../support/plane-under-test.ts";

const http = port(80);
const all = listener("all", http, "");

test("an idle connection is closed by Envoy, so that no request meets a backend's hanging up", async () => {
  const sockets: Socket[] = [];
  // It would keep connections for ever.
  const server = createServer({ keepAliveTimeout: 0 }, (_request, response) => response.end("here"));
  server.on("connection", (socket) => sockets.push(socket)).listen(0, "127.0.0.1");
  onTestFinished(() => server.closeAllConnections());
  await once(server, "listening");
  const plane = await PlaneUnderTest.start(createEnvoy, [
    http,
    all,
    host(all, "", [rule({ action: forwardTo("b") })]),
    backend("b", [(server.address() as AddressInfo).port]),
  ]);
  onTestFinished(() => plane.close());

  expect((await ask(plane.at(80), { host: "any.example" })).status).toBe(200);
  const [socket] = sockets;
  if (socket?.closed === false) await once(socket, "close");
  expect((await ask(plane.at(80), { host: "any.example" })).status).toBe(200);
  expect(sockets).toHaveLength(2);
});
