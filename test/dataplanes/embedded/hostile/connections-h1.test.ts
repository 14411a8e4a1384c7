/**
 * HTTP/1 connections over real sockets: who may go on, who gets an answer, what reaches the
 * backend.
 */

import { once } from "node:events";
import type { Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Sockets } from "../../support/sockets.ts";
import { type HostileGateway, startGateway } from "./gateway.ts";
import { parseAnswers, type RawAnswer, received, talk } from "./raw-http.ts";
import { Observed, strictBackend } from "./strict-backend.ts";

const sockets = new Sockets();
const observed = new Observed();
let gateway: HostileGateway;
/** Everything that the recording backend has been sent, one text for each connection. */
const recorded: string[] = [];

beforeAll(async () => {
  gateway = await startGateway({
    public: await strictBackend("public", sockets, observed),
    secret: await strictBackend("secret", sockets, observed),
    recording: await sockets.serve(record),
    late: await sockets.serve((socket) => {
      socket.once("data", () =>
        setTimeout(() => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate"), 200),
      );
    }),
    lengthless: await sockets.serve((socket) => {
      socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\n\r\nhowever long"));
    }),
  });
});

afterAll(async () => {
  await gateway.close();
  await sockets.release();
});

/** Answers when the last chunk, or a head without a body, has come. */
function record(socket: Socket): void {
  const own = recorded.push("") - 1;
  socket.on("data", (bytes) => {
    recorded[own] += bytes.toString("latin1");
    if (/(?:^|\r\n)0\r\n(?:.+\r\n)*\r\n$/.test(recorded[own] as string)) {
      socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    }
  });
}

const ask = (host: string, fields = "", version = "1.1"): string =>
  `GET / HTTP/${version}\r\nHost: ${host}.example\r\n${fields}\r\n`;
const statuses = (answers: readonly RawAnswer[]): readonly number[] => answers.map(({ status }) => status);
const field = (answer: RawAnswer | undefined, name: string): string | undefined =>
  answer?.headers.find(([known]) => known === name)?.[1];

describe("a connection of HTTP/1", () => {
  it("that the client has half closed still gets its answer", async () => {
    const socket = await sockets.connect(gateway.port);
    const answer = received(socket);
    socket.end(ask("late"));
    expect(parseAnswers(await answer)).toMatchObject([{ status: 200, body: "late" }]);
  });

  it("that ends in the middle of a head or of a body gets 400", async () => {
    for (const part of [
      "GET / HT",
      "POST / HTTP/1.1\r\nHost: public.example\r\nContent-Length: 9\r\n\r\nhalf",
    ]) {
      const socket = await sockets.connect(gateway.port);
      const answer = received(socket);
      socket.end(part);
      expect(statuses(parseAnswers(await answer))).toEqual([400]);
    }
  });

  it("of HTTP/1.0 ends with its answer, unless the client asks for more and the length is known", async () => {
    const [plain] = await talk(sockets, gateway.port, ask("public", "", "1.0"));
    expect(field(plain, "connection")).toBe("close");
    const kept = await talk(
      sockets,
      gateway.port,
      ask("public", "Connection: keep-alive\r\n", "1.0") + ask("public", "", "1.0"),
    );
    expect(statuses(kept)).toEqual([200, 200]);
    expect(field(kept[0], "connection")).toBe("keep-alive");
    const endless = await talk(
      sockets,
      gateway.port,
      ask("lengthless", "Connection: keep-alive\r\n", "1.0") + ask("public", "", "1.0"),
    );
    expect(endless).toMatchObject([{ status: 200, body: "however long" }]);
    expect(field(endless[0], "transfer-encoding")).toBeUndefined();
  });

  it("of HTTP/1.1 gets chunks where the backend gives no length, and goes on", async () => {
    const answers = await talk(
      sockets,
      gateway.port,
      ask("lengthless") + ask("public", "Connection: close\r\n"),
    );
    expect(statuses(answers)).toEqual([200, 200]);
    expect(answers[0]).toMatchObject({ body: "however long", complete: true });
    expect(field(answers[0], "transfer-encoding")).toBe("chunked");
  });

  it("goes on when the rest of a body comes after an early answer", async () => {
    const socket = await sockets.connect(gateway.port);
    const answer = received(socket);
    socket.write("POST / HTTP/1.1\r\nHost: nobody.example\r\nContent-Length: 10\r\n\r\nfirst");
    await once(socket, "data");
    socket.write(`after${ask("public", "Connection: close\r\n")}`);
    expect(statuses(parseAnswers(await answer))).toEqual([404, 200]);
  });

  it("is heard again behind a body that had to wait for a connection to the backend", async () => {
    const slow = await sockets.serve((socket) => {
      socket.on("data", (bytes) => {
        if (!bytes.toString("latin1").includes("HTTP/1.1\r\n")) return;
        setTimeout(() => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nslow"), 300);
      });
    });
    const narrow = await startGateway({ slow }, { connectionsPerEndpoint: 1 });
    const first = talk(sockets, narrow.port, ask("slow", "Connection: close\r\n"));
    const socket = await sockets.connect(narrow.port);
    const answer = received(socket);
    // A little more than a stream holds: it says that it is full with the very last piece.
    const length = 65_600;
    socket.write(
      `POST / HTTP/1.1\r\nHost: slow.example\r\nContent-Length: ${length}\r\n\r\n${"x".repeat(length)}`,
    );
    await once(socket, "data");
    socket.write(ask("nobody", "Connection: close\r\n"));
    expect(statuses(parseAnswers(await answer))).toEqual([200, 404]);
    expect(statuses(await first)).toEqual([200]);
    await narrow.close();
  });

  it("carries trailers of a request to the backend, without those that may not pass", async () => {
    const answers = await talk(
      sockets,
      gateway.port,
      [
        "POST /up HTTP/1.1",
        "Host: recording.example",
        "Connection: close",
        "Transfer-Encoding: chunked",
        "",
        "5",
        "hello",
        "0",
        "X-Checksum: abc",
        "Host: elsewhere.example",
        "\r\n",
      ].join("\r\n"),
    );
    expect(statuses(answers)).toEqual([200]);
    expect(recorded.at(-1)).toMatch(/\r\n\r\n5\r\nhello\r\n0\r\nx-checksum: abc\r\n\r\n$/);
  });
});
