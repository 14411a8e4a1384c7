/** Resets of connections whatever state they are in. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { sideOf } from "../../../../src/dataplanes/embedded/sockets/connect-endpoint.ts";

async function connected(): Promise<Socket> {
  const peers: Socket[] = [];
  const server = createServer({ allowHalfOpen: true }, (peer) => {
    peers.push(peer);
    peer.on("error", () => {});
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  onTestFinished(() => {
    socket.destroy();
    for (const peer of peers) peer.destroy();
    server.close();
  });
  await once(socket, "connect");
  return socket;
}

test("a connection is closed that is reset while its own end is being sent", async () => {
  const socket = await connected();
  socket.on("error", () => {});
  socket.end();
  // Node has asked the system to shut the connection down, and has not heard of it yet.
  await new Promise((resolve) => process.nextTick(resolve));
  expect(socket.writableEnded && !socket.writableFinished).toBe(true);
  sideOf(socket).reset();
  await once(socket, "close");
});

test("a connection that is open is reset", async () => {
  const socket = await connected();
  sideOf(socket).reset();
  await once(socket, "close");
});
