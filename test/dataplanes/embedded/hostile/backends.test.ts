import { once } from "node:events";
import type { Socket } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { Sockets } from "../../support/sockets.ts";
import { type HostileGateway, startGateway } from "./gateway.ts";
import { parseAnswers, type RawAnswer, received, talk } from "./raw-http.ts";
import { Observed, strictBackend } from "./strict-backend.ts";

/**
 * What the odd backend does when the head of a request has come; set by each test. What it gives
 * back is sent.
 */
let behave: (socket: Socket, head: string) => string | undefined = () => undefined;
const fine = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine";
const sockets = new Sockets();
const observed = new Observed();
let gateway: HostileGateway;
let oddPort = 0;

beforeAll(async () => {
  oddPort = await sockets.serve(answerByHead);
  gateway = await startGateway({
    public: await strictBackend("public", sockets, observed),
    secret: await strictBackend("secret", sockets, observed),
    odd: oddPort,
  });
});

afterEach(async () => {
  // Nobody else is affected, and the odd backend is served again as soon as it behaves.
  expect((await get("public", "/bystander")).status).toBe(200);
  behave = () => fine;
  expect(await get("odd", "/again")).toMatchObject({ status: 200, body: "fine", complete: true });
  expect(observed.violations).toEqual([]);
});

afterAll(async () => {
  await gateway.close();
  await sockets.release();
});

async function get(host: string, path: string, method = "GET"): Promise<RawAnswer> {
  const answers = await talk(
    sockets,
    gateway.port,
    `${method} ${path} HTTP/1.1\r\nHost: ${host}.example\r\nConnection: close\r\n\r\n`,
  );
  expect(answers.length).toBe(1);
  return answers[0] as RawAnswer;
}

function answerByHead(socket: Socket): void {
  let bytes = "";
  socket.on("data", (chunk) => {
    bytes += chunk.toString("latin1");
    for (let end = bytes.indexOf("\r\n\r\n"); end >= 0; end = bytes.indexOf("\r\n\r\n")) {
      const head = bytes.slice(0, end);
      bytes = bytes.slice(end + 4);
      const text = behave(socket, head);
      if (text !== undefined && !socket.destroyed) socket.write(text, "latin1");
    }
  });
}

/** Always the same answer, byte for byte. */
function always(text: string): () => string {
  return () => text;
}

describe("a backend that is not well", () => {
  it("refuses connections: 503", async () => {
    const alone = new Sockets();
    const port = await alone.serve(() => {});
    await alone.release();
    const other = await startGateway({ odd: port });
    const answers = await talk(
      sockets,
      other.port,
      "GET / HTTP/1.1\r\nHost: odd.example\r\nConnection: close\r\n\r\n",
    );
    expect(answers.map(({ status }) => status)).toEqual([503]);
    await other.close();
  });

  it("hangs before it answers: 504", async () => {
    behave = () => undefined;
    expect((await get("odd", "/")).status).toBe(504);
  });

  it("sends its header one byte at a time and never comes to the end: 504", async () => {
    behave = (socket) => {
      const text = `HTTP/1.1 200 OK\r\nX: ${"y".repeat(10_000)}`;
      let sent = 0;
      const trickle = setInterval(() => socket.write(text[sent++] ?? ""), 100);
      socket.on("close", () => clearInterval(trickle));
      return undefined;
    };
    expect((await get("odd", "/")).status).toBe(504);
  });

  it("hangs in the middle of its answer: the answer is cut off, not ended", async () => {
    behave = always("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
    expect(await get("odd", "/")).toMatchObject({ status: 200, body: "half", complete: false });
    behave = always("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n");
    expect(await get("odd", "/")).toMatchObject({ status: 200, body: "half", complete: false });
  });

  it("resets before it answers: 502", async () => {
    behave = (socket) => void socket.resetAndDestroy();
    expect((await get("odd", "/")).status).toBe(502);
    expect((await get("odd", "/", "POST")).status).toBe(502);
  });

  it("closes before it answers: 502", async () => {
    behave = (socket) => void socket.end();
    expect((await get("odd", "/")).status).toBe(502);
  });

  it("does not send a POST twice to a backend that breaks off", async () => {
    let seen = 0;
    behave = (socket, head) => {
      if (head.startsWith("POST")) seen += 1;
      socket.resetAndDestroy();
      return undefined;
    };
    expect((await get("odd", "/order", "POST")).status).toBe(502);
    expect(seen).toBe(1);
  });

  it.each([
    ["a length", "Content-Length: 100", "half"],
    ["chunks", "Transfer-Encoding: chunked", "4\r\nhalf\r\n"],
  ])("breaks off in an answer with %s: the client can tell", async (_title, field, body) => {
    for (const leave of [
      (s: Socket) => s.destroy(),
      (s: Socket) => s.resetAndDestroy(),
      (s: Socket) => s.end(),
    ]) {
      behave = (socket) => {
        setTimeout(() => leave(socket), 50);
        return `HTTP/1.1 200 OK\r\n${field}\r\n\r\n${body}`;
      };
      expect(await get("odd", "/")).toMatchObject({ status: 200, body: "half", complete: false });
    }
  });

  it.each([
    ["no status line", "hello\r\n\r\n"],
    ["a status that is no number", "HTTP/1.1 2xx OK\r\nContent-Length: 0\r\n\r\n"],
    ["a status of four digits", "HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n"],
    ["a version of its own", "HTTP/3.7 200 OK\r\nContent-Length: 0\r\n\r\n"],
    ["a header without a colon", "HTTP/1.1 200 OK\r\nabc\r\nContent-Length: 0\r\n\r\n"],
    ["a space in a header name", "HTTP/1.1 200 OK\r\nA b: c\r\nContent-Length: 0\r\n\r\n"],
    ["a NUL in a header", "HTTP/1.1 200 OK\r\nA: b\0c\r\nContent-Length: 0\r\n\r\n"],
    ["a bare CR in a header", "HTTP/1.1 200 OK\r\nA: b\rSet-Cookie: c\r\nContent-Length: 0\r\n\r\n"],
    ["two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 0\r\n\r\nfine"],
    ["a negative length", "HTTP/1.1 200 OK\r\nContent-Length: -4\r\n\r\nfine"],
    [
      "a length and chunks",
      "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
    ["a header of 1 MB", `HTTP/1.1 200 OK\r\nA: ${"b".repeat(1_000_000)}\r\nContent-Length: 0\r\n\r\n`],
    [
      "a switch that nobody asked for",
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    ],
  ])("answers with %s: 502", async (_title, text) => {
    behave = always(text);
    expect((await get("odd", "/")).status).toBe(502);
  });

  it("sends a bad chunk: the answer is cut off", async () => {
    behave = always("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nzz\r\n\r\n");
    const answer = await get("odd", "/");
    if (answer.status === 200) expect(answer.complete).toBe(false);
    else expect(answer.status).toBe(502);
  });

  it("says more than it announced: the rest is nobody's answer", async () => {
    const stray = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstray";
    for (const first of [
      "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine",
      "HTTP/1.1 204 No Content\r\n\r\n",
    ]) {
      behave = always(first + stray);
      for (let i = 0; i < 10; i++) {
        const { status, body } = await get("odd", `/${i}`);
        expect([200, 204, 502]).toContain(status);
        expect(body).not.toContain("stray");
      }
    }
  });

  it("speaks up on a connection where nobody asked: nobody hears it", async () => {
    behave = (socket) => {
      setTimeout(
        () => socket.destroyed || socket.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstray"),
        30,
      );
      return fine;
    };
    for (let i = 0; i < 10; i++) {
      expect((await get("odd", `/${i}`)).body).not.toContain("stray");
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  });

  it("answers HEAD with a body: nobody takes it for the next answer", async () => {
    behave = always("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstray");
    for (let i = 0; i < 5; i++) {
      const text = await new Promise<string>((resolve) => {
        void sockets.connect(gateway.port).then((socket) => {
          socket.write("HEAD / HTTP/1.1\r\nHost: odd.example\r\nConnection: close\r\n\r\n");
          void received(socket).then(resolve);
        });
      });
      expect(text.split("\r\n\r\n").slice(1).join("")).toBe("");
      expect((await get("odd", "/next")).body).toBe("stray");
    }
  });

  it("sends a hundred interim answers first: the client gets the final one", async () => {
    behave = always(
      `${"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".repeat(100)}HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine`,
    );
    expect(await get("odd", "/")).toMatchObject({ status: 200, body: "fine" });
  });

  it("sends interim answers without end to a client that does not read: what it does not take is dropped", async () => {
    const one = `HTTP/1.1 103 Early Hints\r\nX-Filler: ${"x".repeat(8_000)}\r\n\r\n`;
    const block = one.repeat(16);
    const blocks = 256;
    const sent = new Promise<void>((resolve) => {
      behave = (socket) => {
        let left = blocks;
        const more = (): void => {
          while (left-- > 0) {
            if (socket.write(block)) continue;
            socket.once("drain", more);
            return;
          }
          socket.write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine", () => resolve());
        };
        more();
      };
    });
    const patient = await startGateway({ odd: oddPort }, { backendResponseTimeoutMs: 0 });
    const socket = await sockets.connect(patient.port);
    socket.pause();
    socket.write("GET / HTTP/1.1\r\nHost: odd.example\r\nConnection: close\r\n\r\n");
    await sent;
    const all = received(socket);
    socket.resume();
    const text = await all;
    await patient.close();
    expect(text.endsWith("\r\n\r\nfine")).toBe(true);
    expect(text).toContain("HTTP/1.1 103 ");
    expect(text.length).toBeLessThan((block.length * blocks) / 2);
  });

  it("passes none of its hop-by-hop headers on", async () => {
    behave = always(
      "HTTP/1.1 200 OK\r\nConnection: X-Private\r\nX-Private: 1\r\nKeep-Alive: timeout=1\r\nProxy-Authenticate: Basic\r\nContent-Length: 4\r\n\r\nfine",
    );
    const names = (await get("odd", "/")).headers.map(([name]) => name);
    expect(names).not.toContain("x-private");
    expect(names).not.toContain("proxy-authenticate");
  });
});

describe("a backend that answers before it has read", () => {
  const early = "HTTP/1.1 413 Content Too Large\r\nContent-Length: 5\r\n\r\nearly";

  it.each([
    ["and keeps the connection open", () => {}],
    ["and closes", (socket: Socket) => socket.end()],
    ["and resets a moment later", (socket: Socket) => setTimeout(() => socket.resetAndDestroy(), 20)],
  ])("%s: the client gets the answer, the next request gets its own", async (_title, leave) => {
    behave = (socket, head) => {
      if (!head.startsWith("POST")) return fine;
      socket.write(early);
      leave(socket);
      return undefined;
    };
    for (let i = 0; i < 3; i++) {
      const client = await sockets.connect(gateway.port);
      const answer = received(client);
      client.write("POST /upload HTTP/1.1\r\nHost: odd.example\r\nContent-Length: 100000\r\n\r\nbeginning");
      await once(client, "data");
      // The rest of the body would be the beginning of a request, if anybody mixed them up.
      const next = "GET /smuggled HTTP/1.1\r\nHost: odd.example\r\n\r\n";
      client.write(next + "x".repeat(100_000 - 9 - next.length));
      client.end();
      const answers = parseAnswers(await answer);
      expect(answers.map(({ status, body }) => [status, body])).toEqual([[413, "early"]]);
      expect(await get("odd", "/after")).toMatchObject({ status: 200, body: "fine" });
    }
  });

  it("does not hand the half-used connection to somebody else", async () => {
    const heads: string[] = [];
    const used: Socket[] = [];
    behave = (socket, head) => {
      heads.push(head.split("\r\n")[0] ?? "");
      used.push(socket);
      return head.startsWith("POST") ? early : fine;
    };
    const client = await sockets.connect(gateway.port);
    client.write("POST /upload HTTP/1.1\r\nHost: odd.example\r\nContent-Length: 1000\r\n\r\nbeginning");
    await once(client, "data");
    expect(await get("odd", "/other")).toMatchObject({ status: 200, body: "fine" });
    client.destroy();
    expect(heads).toEqual(["POST /upload HTTP/1.1", "GET /other HTTP/1.1"]);
    expect(used[1]).not.toBe(used[0]);
  });
});
