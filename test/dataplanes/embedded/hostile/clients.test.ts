import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Socket } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { Sockets } from "../../support/sockets.ts";
import { type HostileGateway, startGateway } from "./gateway.ts";
import { parseAnswers, received, talk } from "./raw-http.ts";
import { header, Observed, strictBackend } from "./strict-backend.ts";

const sockets = new Sockets();
const observed = new Observed();
let gateway: HostileGateway;
/** Sends without end, and tells how much it could send. */
let poured = 0;

beforeAll(async () => {
  gateway = await startGateway({
    public: await strictBackend("public", sockets, observed),
    secret: await strictBackend("secret", sockets, observed),
    endless: await sockets.serve((socket) => {
      socket.once("data", () => {
        socket.write("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
        pour(socket);
      });
    }),
  });
});

afterEach(async () => {
  await expectServed();
  expect(observed.violations).toEqual([]);
});

afterAll(async () => {
  await gateway.close();
  await sockets.release();
});

function pour(socket: Socket): void {
  const block = Buffer.alloc(64 * 1024);
  const more = (): void => {
    while (!socket.destroyed && poured < 1_000_000_000) {
      poured += block.length;
      if (!socket.write(block)) {
        socket.once("drain", more);
        return;
      }
    }
  };
  more();
}

async function expectServed(): Promise<void> {
  const answers = await talk(
    sockets,
    gateway.port,
    "GET /bystander HTTP/1.1\r\nHost: public.example\r\nX-Id: bystander\r\nConnection: close\r\n\r\n",
  );
  expect(answers.map(({ status }) => status)).toEqual([200]);
}

/** Writes piece by piece until the connection is closed by the other side; gives what came back. */
async function drip(first: string, piece: string, everyMs: number): Promise<readonly number[]> {
  const socket = await sockets.connect(gateway.port);
  const answer = received(socket);
  socket.write(first);
  const timer = setInterval(() => socket.write(piece), everyMs);
  const text = await answer.finally(() => clearInterval(timer));
  return parseAnswers(text).map(({ status }) => status);
}

describe("a client that is slow", () => {
  it("with its header gets 408", async () => {
    expect(await drip("GET / HTTP/1.1\r\nHost: public.example\r\nX: ", "x", 50)).toEqual([408]);
  });

  it("with its first byte is closed without a word", async () => {
    const socket = await sockets.connect(gateway.port);
    expect(await received(socket)).toBe("");
  });

  it("with the preface of HTTP/2 is closed", async () => {
    const socket = await sockets.connect(gateway.port);
    const answer = received(socket);
    socket.write("PRI * HT");
    expect(parseAnswers(await answer).every(({ status }) => status >= 400)).toBe(true);
  });

  it("with its body gets 408, and the backend does not take the request for whole", async () => {
    const head =
      "POST /slow HTTP/1.1\r\nHost: public.example\r\nX-Id: slow-body\r\nContent-Length: 100\r\n\r\nbeginning";
    const socket = await sockets.connect(gateway.port);
    const answer = received(socket);
    socket.write(head);
    expect(parseAnswers(await answer).map(({ status }) => status)).toEqual([408]);
    expect(observed.of("slow-body").filter(({ complete }) => complete)).toEqual([]);
  });

  it("to ask again is closed", async () => {
    const socket = await sockets.connect(gateway.port);
    const answer = received(socket);
    socket.write("GET / HTTP/1.1\r\nHost: public.example\r\n\r\n");
    expect(parseAnswers(await answer).map(({ status }) => status)).toEqual([200]);
  });

  it("to read stops its own backend and nobody else", async () => {
    poured = 0;
    const socket = await sockets.connect(gateway.port);
    socket.write("GET / HTTP/1.1\r\nHost: endless.example\r\n\r\n");
    await once(socket, "readable");
    let before = -1;
    while (before !== poured) {
      before = poured;
      await new Promise((resolve) => setTimeout(resolve, 300));
      await expectServed();
    }
    // Kernel buffers on the way, never the gigabyte.
    expect(poured).toBeLessThan(100_000_000);
    socket.destroy();
  });
});

describe("a client whose body never ends", () => {
  it("gets 413 at the limit when it says its length", async () => {
    const answers = await talk(
      sockets,
      gateway.port,
      "POST / HTTP/1.1\r\nHost: public.example\r\nX-Id: long\r\nContent-Length: 999999999\r\n\r\n",
    );
    expect(answers.map(({ status }) => status)).toEqual([413]);
    expect(observed.of("long").filter(({ complete }) => complete)).toEqual([]);
  });

  it("gets 413 at the limit when it does not", async () => {
    const socket = await sockets.connect(gateway.port);
    const answer = received(socket);
    socket.write(
      "POST / HTTP/1.1\r\nHost: public.example\r\nX-Id: endless\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    const chunk = `10000\r\n${"x".repeat(0x10000)}\r\n`;
    let sent = 0;
    while (!socket.closed && !socket.destroyed && sent < 500 * chunk.length) {
      sent += chunk.length;
      if (!socket.write(chunk))
        await Promise.race([once(socket, "drain"), once(socket, "close")]).catch(() => {});
    }
    socket.end();
    expect(parseAnswers(await answer).map(({ status }) => status)).toEqual([413]);
    expect(observed.of("endless").filter(({ complete }) => complete)).toEqual([]);
  });
});

describe("a client that leaves", () => {
  it("in the middle of its body does not leave a whole request behind", async () => {
    for (const [id, field, part] of [
      ["left-length", "Content-Length: 100", "beginning"],
      ["left-chunks", "Transfer-Encoding: chunked", "9\r\nbeginning\r\n"],
    ]) {
      const socket = await sockets.connect(gateway.port);
      socket.write(`POST / HTTP/1.1\r\nHost: public.example\r\nX-Id: ${id}\r\n${field}\r\n\r\n${part}`);
      await expect.poll(() => observed.of(id ?? "").length).toBe(1);
      socket.destroy();
      await expectServed();
      expect(observed.of(id ?? "")[0]?.complete).toBe(false);
    }
  });
});

describe("a client that goes on with rubbish", () => {
  it("after an answer gets 400 for it", async () => {
    const socket = await sockets.connect(gateway.port);
    const answer = received(socket);
    socket.write("GET /first HTTP/1.1\r\nHost: public.example\r\n\r\n");
    await once(socket, "data");
    socket.write("rubbish\r\n\r\n");
    expect(parseAnswers(await answer).map(({ status }) => status)).toEqual([200, 400]);
  });
});

describe("a client that pretends", () => {
  it("to be somebody else is not believed", async () => {
    await talk(
      sockets,
      gateway.port,
      [
        "GET /who HTTP/1.1",
        "Host: public.example",
        "X-Id: pretender",
        "X-Forwarded-For: 192.0.2.1",
        "X-Forwarded-Proto: https",
        "X-Forwarded-Host: secret.example",
        "X-Forwarded-Port: 443",
        "X-Real-IP: 192.0.2.1",
        "Forwarded: for=192.0.2.1",
        "Connection: close\r\n\r\n",
      ].join("\r\n"),
    );
    const [seen] = observed.of("pretender");
    const text = JSON.stringify(seen?.headers);
    expect(text).not.toContain("192.0.2.1");
    expect(header(seen, "x-forwarded-for")).toBe("127.0.0.1");
    expect(header(seen, "x-forwarded-proto")).toBe("http");
    expect(header(seen, "x-forwarded-host") ?? "public.example").toBe("public.example");
  });

  it("that headers are its connection's takes none away that count", async () => {
    await talk(
      sockets,
      gateway.port,
      [
        "POST /hop HTTP/1.1",
        "Host: public.example",
        "X-Id: hop",
        "X-Secret: 1",
        "TE: gzip",
        "Keep-Alive: 5",
        "Proxy-Connection: keep-alive",
        "Upgrade: h2c",
        "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA",
        "Connection: close, X-Secret, X-Forwarded-For, Host, Content-Length, Upgrade, HTTP2-Settings",
        "Content-Length: 5\r\n\r\nhello",
      ].join("\r\n"),
    );
    const [seen] = observed.of("hop");
    expect(seen).toMatchObject({ host: "public.example", body: "hello", complete: true });
    expect(header(seen, "x-forwarded-for")).toBe("127.0.0.1");
    for (const name of ["x-secret", "te", "keep-alive", "proxy-connection", "upgrade", "http2-settings"]) {
      expect(header(seen, name), name).toBeUndefined();
    }
  });
});

describe("a client that asks for a WebSocket", () => {
  it.each([
    ["does not say so for its connection", "X-Nothing: 1"],
    ["names another option", "Connection: keep-alive"],
    ["names an option that only begins alike", "Connection: upgrades"],
  ])("and %s goes on in HTTP/1.1", async (_title, connection) => {
    const answers = await talk(
      sockets,
      gateway.port,
      [
        "GET /unasked HTTP/1.1",
        "Host: public.example",
        "X-Id: unasked",
        connection,
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "",
        "GET /next HTTP/1.1",
        "Host: public.example",
        "X-Id: next",
        "Connection: close\r\n\r\n",
      ].join("\r\n"),
    );
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    const seen = observed.of("unasked").at(-1);
    expect(header(seen, "upgrade")).toBeUndefined();
    expect(header(seen, "connection")).toBeUndefined();
  });

  const ask = (fields: readonly string[]): string =>
    [
      "GET /ws HTTP/1.1",
      "Host: public.example",
      "X-Id: upgrade",
      "Connection: Upgrade",
      "Upgrade: websocket",
      "Sec-WebSocket-Version: 13",
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
      ...fields,
      "\r\n",
    ].join("\r\n");
  const behind =
    "GET /admin/behind HTTP/1.1\r\nHost: public.example\r\nX-Id: behind\r\nConnection: close\r\n\r\n";

  it.each<[string, readonly string[], string]>([
    ["from a backend that has none", [], ""],
    ["with a body", [`Content-Length: ${behind.length}`], ""],
    ["with chunks", ["Transfer-Encoding: chunked"], "0\r\n\r\n"],
  ])("%s gets no way past the rules", async (_title, fields, body) => {
    const socket = await sockets.connect(gateway.port);
    const answer = received(socket);
    socket.write(ask(fields) + body + behind);
    const answers = parseAnswers(await answer);
    expect(answers.length).toBeGreaterThan(0);
    // Whether the bytes behind it are served or not: only as the request that they are, by its own
    // rule.
    expect(observed.of("behind").filter(({ backend }) => backend !== "secret")).toEqual([]);
    await expectServed();
  });
});

/** Opens ten thousand connections, says so, and holds them until its input ends. */
const crowdScript = `
import { connect } from "node:net";
const port = Number(process.argv.at(-1));
const sockets = [];
for (let batch = 0; batch < 100; batch++) {
  await Promise.all(Array.from({ length: 100 }, () => new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", resolve).on("error", reject);
    sockets.push(socket);
  })));
}
console.log(sockets.filter((socket) => !socket.destroyed).length, "open");
process.stdin.on("end", () => process.exit()).resume();
`;

describe("many clients", () => {
  it("that are idle, ten thousand of them, cost nobody else anything", async () => {
    const patient = await startGateway(
      { public: await strictBackend("public", sockets, observed) },
      { headerTimeoutMs: 60_000 },
    );
    // In a process of their own: two ends of ten thousand connections would be too many open files
    // for one.
    const crowd = spawn(
      process.execPath,
      ["--input-type=module", "--eval", crowdScript, String(patient.port)],
      {
        stdio: ["pipe", "pipe", "inherit"],
      },
    );
    const [said] = (await once(crowd.stdout, "data")) as [Buffer];
    expect(said.toString().trim()).toBe("10000 open");
    const ask = "GET /among-many HTTP/1.1\r\nHost: public.example\r\nConnection: close\r\n\r\n";
    for (let i = 0; i < 20; i++) {
      expect((await talk(sockets, patient.port, ask)).map(({ status }) => status)).toEqual([200]);
    }
    crowd.stdin.end();
    await once(crowd, "exit");
    await patient.close();
  });

  it("beyond the limit are turned away, and taken again when others have gone", async () => {
    const small = await startGateway(
      { public: await strictBackend("public", sockets, observed) },
      { maxConnections: 10 },
    );
    const first = await Promise.all(Array.from({ length: 10 }, () => sockets.connect(small.port)));
    const ask = "GET /room HTTP/1.1\r\nHost: public.example\r\nConnection: close\r\n\r\n";
    expect(await talk(sockets, small.port, ask)).toEqual([]);
    const gone = first.map((socket) => once(socket, "close"));
    for (const socket of first) socket.destroy();
    await Promise.all(gone);
    await expect
      .poll(async () => (await talk(sockets, small.port, ask)).map(({ status }) => status))
      .toEqual([200]);
    await small.close();
  });
});
