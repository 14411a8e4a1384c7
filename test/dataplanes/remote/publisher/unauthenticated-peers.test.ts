/**
 * What a peer can do to the plan stream that is nobody, or not who it says it is, or a pod that has
 * been taken over.
 */

import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from "node:tls";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type DeltaMessage, PLAN_PATH } from "../../../../src/dataplanes/remote/protocol/protocol.ts";
import type { StreamRefusal } from "../../../../src/dataplanes/remote/publisher/plan-server.ts";
import type { ItemReport } from "../../../../src/plan/item-report.ts";
import type { PlanItem } from "../../../../src/plan/plan.ts";
import { selfSigned } from "../../support/certificates.ts";
import { PublishingServer, type PublishingServerOptions } from "../publishing-server.ts";

const GATEWAY = "infra/shared";
const PATIENT = { timeout: 20_000, interval: 10 };
const made = selfSigned(["localhost"]);

function listener(name: string, hostname = `${name}.example.com`): PlanItem {
  return {
    type: "listener",
    id: `listener:${name}`,
    gateway: GATEWAY,
    port: "port",
    owner: { kind: "ListenerSet", namespace: "team", name },
    section: "http",
    hostname,
    protocol: "HTTP",
  };
}

/** One connection, as anybody could make it. */
class Peer {
  readonly session: ClientHttp2Session;
  readonly stream: ClientHttp2Stream;
  readonly messages: DeltaMessage[] = [];
  status = 0;
  isClosed = false;
  #text = "";

  constructor(port: number, { token = "good", from = "127.0.0.1", reads = true } = {}) {
    const tls = { ca: made.cert, servername: "localhost", ALPNProtocols: ["h2"] };
    const createConnection = (): TLSSocket =>
      connectTls({ port, host: "127.0.0.1", localAddress: from, ...tls } as ConnectionOptions);
    this.session = connect(`https://127.0.0.1:${port}`, { createConnection });
    this.session.on("error", () => {});
    this.session.on("close", () => {
      this.isClosed = true;
    });
    this.stream = this.session.request({
      ":method": "POST",
      ":path": PLAN_PATH,
      ...(token === "" ? {} : { authorization: `Bearer ${token}` }),
    });
    this.stream.on("error", () => {});
    this.stream.on("response", (headers) => {
      this.status = Number(headers[":status"]);
    });
    if (reads) this.stream.on("data", (chunk: Buffer) => this.#read(chunk));
  }

  say(message: object): void {
    this.stream.write(`${JSON.stringify(message)}\n`);
  }

  hello(pod = "pod", gateway = GATEWAY): void {
    this.say({ type: "hello", gateway, pod, acknowledges: true });
  }

  #read(chunk: Buffer): void {
    this.#text += chunk.toString();
    const lines = this.#text.split("\n");
    this.#text = lines.pop() ?? "";
    for (const line of lines) this.messages.push(JSON.parse(line) as DeltaMessage);
  }
}

describe("a peer of the plan stream", () => {
  const ends: (() => Promise<void> | void)[] = [];
  let refusals: StreamRefusal[];
  let server: PublishingServer;
  let port: number;

  async function start(options: Partial<PublishingServerOptions> = {}): Promise<void> {
    server = new PublishingServer({
      features: new Set(),
      certificate: made.cert,
      key: made.key,
      address: "0.0.0.0",
      port: 0,
      authorize: async (token) => token === "good",
      onRefused: (refusal) => refusals.push(refusal),
      ...options,
    });
    const opened = server;
    ends.push(() => opened.close());
    port = await server.listen();
  }

  function peer(options: ConstructorParameters<typeof Peer>[1] = {}): Peer {
    const made = new Peer(port, options);
    ends.push(() => made.session.destroy());
    return made;
  }

  beforeEach(() => {
    refusals = [];
  });

  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
  });

  const reasons = (): readonly string[] => refusals.map(({ reason }) => reason);

  it("without a valid token is refused, and each refusal is reported once", async () => {
    await start();
    const nobody = peer({ token: "" });
    await expect.poll(() => nobody.status, PATIENT).toBe(401);
    const unauthorised = peer({ token: "stolen" });
    unauthorised.hello();
    await expect.poll(() => unauthorised.status, PATIENT).toBe(403);
    await expect.poll(() => unauthorised.isClosed && nobody.isClosed, PATIENT).toBe(true);
    expect(refusals).toEqual([
      { reason: "token", peer: "127.0.0.1" },
      { reason: "identity", peer: "127.0.0.1", claim: { gateway: GATEWAY, pod: "pod" } },
    ]);
  });

  it("cannot fill the controller's memory with an endless hello", async () => {
    await start();
    const endless = peer();
    endless.stream.write("x".repeat(1024 * 1024));
    await expect.poll(reasons, PATIENT).toEqual(["hello"]);
    await expect.poll(() => endless.isClosed, PATIENT).toBe(true);
  });

  it.each(["not json", "null", "[]", '{"type":"hello","gateway":{},"pod":[]}', '{"type":"serve","have":{}}'])(
    "that begins with %s is refused",
    async (line) => {
      await start();
      const odd = peer();
      odd.stream.write(`${line}\n`);
      await expect.poll(() => odd.status, PATIENT).toBe(400);
      expect(reasons()).toEqual(["hello"]);
    },
  );

  it("that sends nothing is disconnected", async () => {
    await start({ limits: { helloMs: 200 } });
    const silent = peer();
    await expect.poll(() => silent.isClosed, PATIENT).toBe(true);
    expect(reasons()).toEqual(["hello"]);
    const pod = peer();
    pod.hello();
    await expect.poll(() => pod.status, PATIENT).toBe(200);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(pod.isClosed).toBe(false);
  });

  it("that opens many connections does not keep others out", async () => {
    await start({ limits: { perAddress: 3, restMs: 60_000 } });
    for (let i = 0; i < 10; i++) peer();
    await expect.poll(() => reasons().filter((reason) => reason === "crowd").length, PATIENT).toBe(7);
    const pod = peer({ from: "127.0.0.2" });
    pod.hello();
    await expect.poll(() => pod.status, PATIENT).toBe(200);
  });

  it("that reconnects again and again is refused without a TokenReview", async () => {
    let reviews = 0;
    await start({
      limits: { perAddress: 3, restMs: 60_000 },
      authorize: async () => {
        reviews++;
        return false;
      },
    });
    for (let i = 0; i < 8; i++) {
      const unauthorised = peer({ token: "stolen" });
      unauthorised.hello();
      await expect.poll(() => unauthorised.isClosed, PATIENT).toBe(true);
    }
    expect(reviews).toBe(3);
    expect(reasons().filter((reason) => reason === "crowd")).toHaveLength(5);
  });

  it("with the token of a pod that is connected from another address is refused", async () => {
    await start();
    server.apply({ upserts: [listener("a")], removes: [] });
    const pod = peer();
    pod.hello();
    await expect.poll(() => pod.status, PATIENT).toBe(200);
    const replay = peer({ from: "127.0.0.2" });
    replay.hello();
    await expect.poll(() => replay.status, PATIENT).toBe(409);
    expect(refusals).toEqual([
      { reason: "elsewhere", peer: "127.0.0.2", claim: { gateway: GATEWAY, pod: "pod" } },
    ]);
    pod.say({ type: "serve", have: {} });
    await expect.poll(() => pod.messages.length, PATIENT).toBe(1);
  });

  it("that is a returning pod replaces its old connection, and its reports stay valid", async () => {
    const reports: ItemReport[] = [];
    await start();
    server.onReport((changed) => reports.push(...changed));
    server.apply({ upserts: [listener("a")], removes: [] });
    const old = peer();
    old.hello();
    await expect.poll(() => old.status, PATIENT).toBe(200);
    const back = peer();
    back.hello();
    back.say({ type: "report", reports: [{ id: "listener:a", state: "rejected", reason: "No" }] });
    await expect.poll(() => reports.length, PATIENT).toBe(1);
    await expect.poll(() => old.stream.closed, PATIENT).toBe(true);
    const other = peer({ from: "127.0.0.2" });
    other.hello("other");
    other.say({ type: "report", reports: [{ id: "listener:a", state: "programmed" }] });
    other.say({ type: "serve", have: {} });
    await expect.poll(() => other.messages.length, PATIENT).toBe(1);
    expect(reports).toEqual([{ id: "listener:a", state: "rejected", reason: "No" }]);
  });

  it("that asks for the plan twice is disconnected", async () => {
    await start();
    const pod = peer();
    pod.hello();
    pod.say({ type: "serve", have: {} });
    await expect.poll(() => pod.messages.length, PATIENT).toBe(1);
    pod.say({ type: "serve", have: {} });
    await expect.poll(() => pod.stream.closed, PATIENT).toBe(true);
  });

  it("that does not read is sent no more than the stream accepts, and is shown to lag", async () => {
    await start();
    const items = Array.from({ length: 5_000 }, (_, i) => listener(`n${i}`, `${"x".repeat(500)}.test`));
    server.apply({ upserts: items, removes: [] });
    const slow = peer({ reads: false });
    slow.hello();
    slow.say({ type: "serve", have: {} });
    await expect.poll(() => server.lags.length, PATIENT).toBe(1);
    expect(server.lags[0]).toMatchObject({ gateway: GATEWAY, pod: "pod" });
    expect(server.lags[0]?.unsent).toBeGreaterThan(4_000);
    const seconds = server.lags[0]?.unacknowledgedSeconds ?? 0;
    await expect.poll(() => server.lags[0]?.unacknowledgedSeconds, PATIENT).toBeGreaterThan(seconds);
    slow.stream.resume();
    await expect.poll(() => server.lags[0]?.unsent, PATIENT).toBe(0);
  });

  it("that is a pod can report only valid data, and only on its own Gateway", async () => {
    const reports: ItemReport[] = [];
    await start();
    server.onReport((changed) => reports.push(...changed));
    server.apply({
      upserts: [listener("a"), { ...listener("b"), gateway: "other/gateway" } as PlanItem],
      removes: [],
    });
    const pod = peer();
    pod.hello();
    pod.say({
      type: "report",
      reports: [
        null,
        { id: 1, state: "programmed" },
        { id: "listener:a", state: "owned" },
        { id: "listener:b", state: "rejected", reason: "Mine" },
        { id: "listener:a", state: "rejected", reason: "not a reason", message: "m".repeat(5_000) },
      ],
    });
    await expect.poll(() => reports.length, PATIENT).toBe(1);
    expect(reports).toEqual([{ id: "listener:a", state: "rejected", message: "m".repeat(1024) }]);
  });

  it("is measured from the change to its acknowledgement", async () => {
    const stages: string[] = [];
    const seconds: number[] = [];
    await start({
      since: () => performance.now() - 5_000,
      onProgress: (stage, took) => {
        stages.push(stage);
        seconds.push(took);
      },
    });
    server.apply({ upserts: [listener("before")], removes: [] });
    expect(stages).toEqual([]);
    const first = peer();
    const second = peer({ from: "127.0.0.2" });
    first.hello("first");
    second.hello("second");
    for (const pod of [first, second]) {
      pod.say({ type: "serve", have: {} });
      await expect.poll(() => pod.messages.length, PATIENT).toBe(1);
    }
    server.apply({ upserts: [listener("a")], removes: [] });
    expect(stages).toEqual(["sent"]);
    for (const pod of [first, second]) await expect.poll(() => pod.messages.length, PATIENT).toBe(2);
    const state = first.messages[1]?.state;
    first.say({ type: "acknowledge", state });
    await expect.poll(() => lagOf("first"), PATIENT).toBe(0);
    expect(lagOf("second")).toBeGreaterThan(0);
    expect(stages).toEqual(["sent"]);
    second.say({ type: "acknowledge", state: 1e9 });
    second.say({ type: "acknowledge", state });
    await expect.poll(() => stages, PATIENT).toEqual(["sent", "acknowledged"]);
    expect(lagOf("second")).toBe(0);
    for (const took of seconds) expect(took).toBeGreaterThanOrEqual(5);
  });

  it("that has gone is not waited for", async () => {
    const stages: string[] = [];
    await start({ since: () => performance.now(), onProgress: (stage) => stages.push(stage) });
    const [stays, goes] = [peer(), peer({ from: "127.0.0.2" })];
    stays.hello("stays");
    goes.hello("goes");
    for (const pod of [stays, goes]) {
      pod.say({ type: "serve", have: {} });
      await expect.poll(() => pod.messages.length, PATIENT).toBe(1);
    }
    server.apply({ upserts: [listener("a")], removes: [] });
    await expect.poll(() => stays.messages.length, PATIENT).toBe(2);
    stays.say({ type: "acknowledge", state: stays.messages[1]?.state });
    await expect.poll(() => lagOf("stays"), PATIENT).toBe(0);
    expect(stages).toEqual(["sent"]);
    goes.session.destroy();
    await expect.poll(() => stages, PATIENT).toEqual(["sent", "acknowledged"]);
  });

  function lagOf(pod: string): number | undefined {
    return server.lags.find((lag) => lag.pod === pod)?.unacknowledgedSeconds;
  }
});
