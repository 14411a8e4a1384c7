import { once } from "node:events";
import { connect as connectTls, type TLSSocket } from "node:tls";
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { DataPlane } from "../../../../src/dataplanes/dataplane.ts";
import { createEmbeddedDataPlane } from "../../../../src/dataplanes/embedded/embedded-data-plane.ts";
import { PrivateKey } from "../../../../src/plan/certificate.ts";
import type { ListenerItem, PlanItem } from "../../../../src/plan/plan.ts";
import { authority, issue, type TestCertificate } from "../../support/certificates.ts";
import { lastingPort } from "../../support/lasting-port.ts";
import { readAll, Sockets } from "../../support/sockets.ts";
import { streamBackend, streamHost, streamRule } from "../../support/stream-table.ts";
import { received } from "./raw-http.ts";
import { Observed, strictBackend } from "./strict-backend.ts";

const sockets = new Sockets();
const observed = new Observed();
const ca = authority();
const certificate = issue(ca, ["public.example"]);
let plane: DataPlane;
let port = 0;
/** What a real client says first, with and without a name. */
let hello: Buffer;

const gateway = "infra/edge";

function itemsOf(backend: number, own: TestCertificate): readonly PlanItem[] {
  const owner = { kind: "Gateway", namespace: "infra", name: "edge" } as const;
  const listener = (
    id: string,
    extra: Pick<ListenerItem, "hostname" | "protocol" | "tls">,
  ): ListenerItem => ({
    type: "listener",
    id,
    gateway,
    port: "port",
    owner,
    section: id,
    ...extra,
  });
  return [
    { type: "port", id: "port", gateway, transport: "tcp", port, protocol: "tls" },
    {
      type: "certificate",
      id: "c",
      gateway,
      chain: own.cert,
      key: new PrivateKey(own.key),
      names: ["public.example"],
    },
    listener("https", {
      hostname: "public.example",
      protocol: "HTTPS",
      tls: { mode: "Terminate", certificates: ["c"] },
    }),
    listener("through", {
      hostname: "through.example",
      protocol: "TLS",
      tls: { mode: "Passthrough", certificates: [] },
    }),
    streamHost("https", [{ ...streamRule(["b", 1]) }], "public.example"),
    streamHost("through", [streamRule(["b", 1])], "through.example"),
    { ...streamBackend("b", [backend]), protocol: "http" },
  ];
}

beforeAll(async () => {
  hello = await captureHello();
  port = await lastingPort();
  plane = createEmbeddedDataPlane({
    bind: { address: "127.0.0.1" },
    workers: 0,
    limits: { headerTimeoutMs: 1_500, keepAliveTimeoutMs: 60_000 },
  });
  const programmed = new Promise<void>((resolve) => {
    plane.onReport((reports) => {
      if (reports.some(({ id, state }) => id === "port" && state === "programmed")) resolve();
    });
  });
  plane.apply({ upserts: itemsOf(await strictBackend("b", sockets, observed), certificate), removes: [] });
  await programmed;
});

afterEach(async () => {
  const client = secure("public.example");
  client.write("GET /bystander HTTP/1.1\r\nHost: public.example\r\nConnection: close\r\n\r\n");
  expect((await readAll(client)).toString()).toMatch(/^HTTP\/1\.1 200 /);
});

afterAll(async () => {
  await plane.close({ graceMs: 0 });
  await sockets.release();
});

function secure(servername: string): TLSSocket {
  const client = connectTls({
    port,
    host: "127.0.0.1",
    ca: ca.cert,
    servername,
    checkServerIdentity: () => undefined,
  });
  sockets.keep(client);
  return client;
}

async function captureHello(): Promise<Buffer> {
  const first = Promise.withResolvers<Buffer>();
  const at = await sockets.serve((socket) => socket.once("data", first.resolve));
  sockets.keep(connectTls({ port: at, host: "127.0.0.1", servername: "public.example" }));
  return await first.promise;
}

/** Everything that the port says to these bytes until it closes. */
async function say(bytes: Buffer | string): Promise<Buffer> {
  const socket = await sockets.connect(port);
  const answer = received(socket);
  if (bytes.length > 0) socket.write(bytes);
  return Buffer.from(await answer, "latin1");
}

const alert = 21;
const handshake = 22;

describe("a client of a TLS port", () => {
  it.each<[string, () => Buffer | string]>([
    ["says nothing", () => ""],
    ["says half a hello", () => hello.subarray(0, 100)],
    ["speaks plain HTTP", () => "GET / HTTP/1.1\r\nHost: public.example\r\n\r\n"],
    ["speaks HTTP/2 without TLS", () => "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    ["sends rubbish", () => Buffer.alloc(2_000, 0x5a)],
    ["announces a record that it never sends", () => Buffer.from([22, 3, 1, 0x3f, 0xff, 1])],
    ["sends a hello of 16 MB", () => Buffer.concat([Buffer.from([22, 3, 1, 0, 4, 1, 0xff, 0xff, 0xff])])],
  ])("that %s is closed without an answer", async (_title, bytes) => {
    expect(await say(bytes())).toHaveLength(0);
  });

  it("that stops after its hello is closed in time", async () => {
    const answer = await say(hello);
    expect(answer[0]).toBe(handshake);
  });

  it("that goes on with rubbish after its hello is closed", async () => {
    const answer = await say(Buffer.concat([hello, Buffer.alloc(1_000, 0x17)]));
    expect([handshake, alert]).toContain(answer[0]);
  });

  it.each(["elsewhere.example", "", "192.0.2.1"])("that asks for %j gets no certificate", async (name) => {
    const client = connectTls({
      port,
      host: "127.0.0.1",
      ...(name !== "192.0.2.1" && { servername: name }),
      ca: ca.cert,
    });
    sockets.keep(client);
    const [error] = (await once(client, "error")) as [NodeJS.ErrnoException];
    expect(error.code).toMatch(/ECONNRESET/);
    expect(client.getPeerX509Certificate()).toBeUndefined();
  });

  it("that got in with one name gets 421 for another", async () => {
    const client = secure("public.example");
    client.write("GET / HTTP/1.1\r\nHost: through.example\r\nConnection: close\r\n\r\n");
    expect((await readAll(client)).toString()).toMatch(/^HTTP\/1\.1 (404|421) /);
  });

  it("that says anything like a hello never harms the port", async () => {
    const edits = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 6 });
    const samples = fc.sample(edits, { numRuns: 300, seed: 7 });
    const answers = await Promise.all(
      samples.map((changes) => {
        const bytes = Buffer.from(hello);
        for (const [at, value] of changes) bytes[at % bytes.length] = value;
        return say(bytes);
      }),
    );
    for (const answer of answers) if (answer.length > 0) expect([alert, handshake]).toContain(answer[0]);
  });
});
