import { once } from "node:events";
import { text } from "node:stream/consumers";
import { setTimeout } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { Connector } from "../../../../src/dataplanes/embedded/upstream/connector.ts";
import type { Link } from "../../../../src/dataplanes/embedded/upstream/link.ts";
import { Sockets } from "../../support/sockets.ts";

let sockets = new Sockets();

afterEach(async () => {
  await sockets.release();
  sockets = new Sockets();
});

function connect(connector: Connector): Promise<Link> {
  return new Promise((resolve, reject) => {
    connector.connect("http/1.1", (error, link) => {
      if (link === undefined) reject(error);
      else {
        sockets.keep(link.socket);
        resolve(link);
      }
    });
  });
}

describe("Connector", () => {
  it("waits as long as it takes where there is no limit", async () => {
    const port = await sockets.serve((socket) => socket.resume());
    const tls = { rejectUnauthorized: false };
    const connector = new Connector({ address: "127.0.0.1", port }, tls, 0);
    const outcome = Promise.withResolvers<string>();
    const socket = connector.connect("http/1.1", (error) => outcome.resolve(error?.message ?? "connected"));
    expect(await Promise.race([outcome.promise, setTimeout(100, "still waiting")])).toBe("still waiting");
    socket.destroy();
    expect(await outcome.promise).toContain("closed before it was ready");
  });

  it("gives up on a backend that does not finish its handshake in time", async () => {
    const port = await sockets.serve((socket) => socket.resume());
    const tls = { rejectUnauthorized: false };
    await expect(connect(new Connector({ address: "127.0.0.1", port }, tls, 50))).rejects.toThrow("in time");
  });

  it("gives what a backend said before it left to whoever reads it as a stream, however late", async () => {
    const port = await sockets.serve((socket) => socket.end("its last words"));
    const link = await connect(new Connector({ address: "127.0.0.1", port }, undefined, 0));
    const stream = link.toStream(Buffer.from("and before them, "));
    await once(link.socket, "close");
    stream.write("nobody hears this");
    expect(await text(stream)).toBe("and before them, its last words");
  });
});
