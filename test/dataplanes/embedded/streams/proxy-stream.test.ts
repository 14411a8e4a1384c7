import { once } from "node:events";
import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import { afterEach, describe, expect, it } from "vitest";
import { proxyStream, type StreamEnd } from "../../../../src/dataplanes/embedded/streams/proxy-stream.ts";
import { Sockets } from "../../support/sockets.ts";

let sockets = new Sockets();
afterEach(async () => {
  await sockets.release();
  sockets = new Sockets();
});

/** A client in memory that takes what it is sent only when it is told to. */
class SlowReader extends Duplex {
  readonly taken: Buffer[] = [];
  readonly #held: (() => void)[] = [];
  #open = false;

  constructor() {
    super({ allowHalfOpen: true });
    this.on("error", () => {});
  }

  takeAll(): void {
    this.#open = true;
    for (const take of this.#held.splice(0)) take();
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    const take = (): void => {
      this.taken.push(chunk);
      done();
    };
    if (this.#open) take();
    else this.#held.push(take);
  }
}

interface Proxied {
  readonly client: SlowReader;
  readonly backend: Socket;
  readonly end: Promise<StreamEnd>;
}

async function proxied(): Promise<Proxied> {
  const accepted = Promise.withResolvers<Socket>();
  const port = await sockets.serve(accepted.resolve);
  const client = new SlowReader();
  const end = new Promise<StreamEnd>((onEnd) => {
    void proxyStream({
      client,
      choose: () => ({ address: "127.0.0.1", port }),
      connectTimeoutMs: 5_000,
      idleTimeoutMs: 30_000,
      signal: new AbortController().signal,
      onEnd,
    });
  });
  return { client, backend: await accepted.promise, end };
}

describe("proxyStream with a client that is slow to read", () => {
  it("keeps the whole answer of a backend that has said everything and then breaks off", async () => {
    const { client, backend, end } = await proxied();
    backend.end("the whole answer");
    await expect.poll(() => client.writableLength).toBeGreaterThan(0);
    // The backend is gone for whatever the client still has to say.
    backend.resetAndDestroy();
    for (let i = 0; i < 20; i++) {
      client.push(Buffer.alloc(16 * 1024));
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    expect(client.destroyed).toBe(false);
    client.push(null);
    client.takeAll();
    expect(await end).toMatchObject({ reason: "closed", bytesFromBackend: 16 });
    expect(Buffer.concat(client.taken).toString()).toBe("the whole answer");
    expect(client.readableEnded).toBe(true);
  });

  it("hands over what a backend said before it broke off, and then breaks off too", async () => {
    const { client, backend, end } = await proxied();
    backend.write("half an ans");
    await expect.poll(() => client.writableLength).toBeGreaterThan(0);
    backend.resetAndDestroy();
    const closed = once(client, "close");
    setTimeout(() => client.takeAll(), 50);
    await closed;
    expect(Buffer.concat(client.taken).toString()).toBe("half an ans");
    expect(client.writableFinished, "no regular end").toBe(false);
    expect((await end).reason).toBe("backend-lost");
  });

  it("does not wait for ever: neither for a client that reads nothing, nor for one that never ends", async () => {
    const deaf = await proxied();
    deaf.backend.write("half an ans");
    await expect.poll(() => deaf.client.writableLength).toBeGreaterThan(0);
    deaf.backend.resetAndDestroy();
    expect((await deaf.end).reason).toBe("backend-lost");

    const endless = await proxied();
    endless.client.takeAll();
    endless.backend.end("bye");
    await expect.poll(() => endless.client.taken.length).toBe(1);
    endless.backend.resetAndDestroy();
    const talking = setInterval(() => endless.client.push("and another thing"), 5);
    await endless.end.finally(() => clearInterval(talking));
    expect(endless.client.destroyed).toBe(true);
  });
});
