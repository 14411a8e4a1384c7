import { createSocket } from "node:dgram";
import { once } from "node:events";
import { Agent, type ClientRequest, type IncomingMessage, request } from "node:http";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { expect, test } from "vitest";
import type { PlanItem } from "../../../src/plan/plan.ts";
import { authority, issue } from "../support/certificates.ts";
import { answerOf, ask, textOf } from "../support/http-peers.ts";
import {
  backend,
  certificate,
  forwardTo,
  host,
  listener,
  port,
  rule,
  secure,
} from "../support/plan-builder.ts";
import type { CreateDataPlane } from "../support/plane-under-test.ts";
import { setStage } from "./stage.ts";
import { onlyIf, type Traits } from "./traits.ts";

const http = port(80);
const tls = port(443, "tls");
const ca = authority();
const shop = listener("shop", http, "shop.example");

/** Changes of the plan while traffic flows, and the end of it all. */
export function describeChanges(create: CreateDataPlane, traits: Traits): void {
  const stage = setStage(create);

  /** A backend that holds its answers until they are asked for. */
  const holding = async (): Promise<{
    readonly at: number;
    readonly waiting: () => number;
    release(): void;
  }> => {
    const held: (() => void)[] = [];
    const at = await stage.backends.http((_request, response) => {
      response.write("begun, ");
      held.push(() => response.end("done"));
    });
    return { at, waiting: () => held.length, release: () => void held.splice(0).map((finish) => finish()) };
  };
  const begin = (at: number, hostname: string, agent: Agent | false = false): ClientRequest =>
    request({ host: "127.0.0.1", port: at, headers: { host: hostname }, agent })
      .on("error", () => {})
      .end() as ClientRequest;
  const openTls = async (at: number, servername: string): Promise<TLSSocket> => {
    const socket = connectTls({ host: "127.0.0.1", port: at, ca: ca.cert, servername });
    stage.onRelease(() => socket.destroy());
    socket.on("error", () => {});
    await once(socket, "secureConnect");
    return socket;
  };

  test("what was applied is served when the data plane says so", async () => {
    const to = async (name: string): Promise<PlanItem> => backend(name, [await stage.backends.echo(name)]);
    const plane = await stage.start([http, shop, await to("b0"), await to("b1")]);
    // What no report tells of, again and again: a rule, and the other one instead of it.
    for (let round = 0; round < 20; round++) {
      const name = `b${round % 2}`;
      const rules = host(shop, "shop.example", [rule({ action: forwardTo(name) })]);
      plane.plane.apply({ upserts: [rules], removes: [] });
      expect((await plane.plane.served?.(shop.gateway)) ?? true).toBe(true);
      expect((await ask(plane.at(80), { host: "shop.example" })).seen.backend).toBe(name);
    }
  });

  test("whatever happens to others, open answers, streams and upgrades go on", async () => {
    const held = await holding();
    const echo = await stage.sockets.serve((socket) => {
      socket.once("data", () => {
        socket.write("HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
        socket.on("data", (bytes) => socket.write(bytes));
      });
    });
    const forA = certificate("c-a", issue(ca, ["a.example"]));
    const a = secure("a", tls, "a.example", [forA]);
    const plane = await stage.start([
      http,
      tls,
      shop,
      a,
      forA,
      host(shop, "shop.example", [
        rule({ path: "/socket", action: forwardTo("echo") }),
        rule({ path: "/", action: forwardTo("held") }),
      ]),
      host(a, "a.example", [rule({ action: forwardTo("held") })]),
      backend("held", [held.at]),
      backend("echo", [echo]),
    ]);

    const download = begin(plane.at(80), "shop.example");
    const [response] = (await once(download, "response")) as [IncomingMessage];
    const session = connectHttp2(`https://127.0.0.1:${plane.at(443)}`, {
      ca: ca.cert,
      servername: "a.example",
    });
    stage.onRelease(() => session.destroy());
    const stream = session.request({ ":path": "/", ":authority": "a.example" });
    await once(stream, "response");
    const socket = await stage.sockets.connect(plane.at(80));
    socket.write(
      "GET /socket HTTP/1.1\r\nHost: shop.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    );
    await once(socket, "data");

    const at = await stage.backends.echo("other");
    for (let round = 0; round < 50; round++) {
      const name = `other-${round % 5}`;
      const own = certificate(`c-${name}`, issue(ca, [`${name}.example`]));
      const clear = listener(`clear-${name}`, http, `${name}.example`);
      const other = secure(`tls-${name}`, tls, `${name}.example`, [own]);
      const items: PlanItem[] = [
        own,
        clear,
        other,
        host(clear, `${name}.example`, [rule({ action: forwardTo(`b-${name}`) })]),
        host(other, `${name}.example`, [rule({ action: forwardTo(`b-${name}`) })]),
        backend(`b-${name}`, [at]),
      ];
      await plane.apply({ upserts: items, removes: [] });
      expect((await ask(plane.at(80), { host: `${name}.example` })).seen.backend).toBe("other");
      await plane.apply({ upserts: [], removes: items.map((item) => item.id) });
      expect((await ask(plane.at(80), { host: `${name}.example` })).status).toBe(404);
    }

    held.release();
    expect(await textOf(response)).toBe("begun, done");
    expect(await textOf(stream)).toBe("begun, done");
    socket.write("still here");
    const [echoed] = (await once(socket, "data")) as [Buffer];
    expect(String(echoed)).toBe("still here");
    expect(session.closed).toBe(false);
  });

  onlyIf(traits.endsIdle)(
    "connections of a removed listener end after what is in flight; its sibling's stay",
    async () => {
      const held = await holding();
      const forA = certificate("c-a", issue(ca, ["a.example"]));
      const forB = certificate("c-b", issue(ca, ["b.example"]));
      const a = secure("a", tls, "a.example", [forA]);
      const b = secure("b", tls, "b.example", [forB]);
      const plane = await stage.start([
        tls,
        a,
        b,
        forA,
        forB,
        host(a, "a.example", [rule({ action: forwardTo("held") })]),
        host(b, "b.example", [rule({ action: forwardTo("echo") })]),
        backend("held", [held.at]),
        backend("echo", [await stage.backends.echo("echo")]),
      ]);
      const open = (servername: string): ClientHttp2Session => {
        const session = connectHttp2(`https://127.0.0.1:${plane.at(443)}`, { ca: ca.cert, servername });
        stage.onRelease(() => session.destroy());
        return session;
      };
      const idle = await openTls(plane.at(443), "a.example");
      const busy = await openTls(plane.at(443), "a.example");
      const sibling = await openTls(plane.at(443), "b.example");
      const session = open("a.example");
      busy.write("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
      const stream = session.request({ ":path": "/", ":authority": "a.example" });
      await once(stream, "response");
      await expect.poll(held.waiting).toBe(2);

      const idleClosed = once(idle, "close");
      idle.resume();
      const goaway = once(session, "goaway");
      await plane.apply({ upserts: [], removes: ["a", "host-a-a.example", "c-a"] });
      await idleClosed;
      await goaway;
      await expect(openTls(plane.at(443), "a.example")).rejects.toThrow();
      const sessionClosed = once(session, "close");
      held.release();
      expect(await textOf(stream)).toBe("begun, done");
      expect(await textOf(busy)).toContain("done");
      await sessionClosed;
      sibling.write("GET / HTTP/1.1\r\nHost: b.example\r\nConnection: close\r\n\r\n");
      expect(await textOf(sibling)).toMatch(/^HTTP\/1\.1 200 /);
    },
  );

  test("a removed port accepts nobody, and lets what is in flight finish", async () => {
    const held = await holding();
    const plane = await stage.start([
      http,
      shop,
      host(shop, "shop.example", [rule({ action: forwardTo("held") })]),
      backend("held", [held.at]),
    ]);
    const agent = new Agent({ keepAlive: true });
    stage.onRelease(() => agent.destroy());
    const asked = begin(plane.at(80), "shop.example", agent);
    const [response] = (await once(asked, "response")) as [IncomingMessage];
    await plane.apply({ upserts: [], removes: [http.id, shop.id] });
    await expect
      .poll(() =>
        ask(plane.at(80), { host: "shop.example" }).then(
          () => "served",
          () => "refused",
        ),
      )
      .toBe("refused");
    const closed = once(response.socket, "close");
    held.release();
    expect((await answerOf(response)).body).toBe("begun, done");
    await closed;
    await plane.apply({ upserts: [http, shop], removes: [] });
    expect((await ask(plane.at(80), { host: "other.example" })).status).toBe(404);
  });

  test("a port that changes its protocol takes leave of its old connections, and shows them nothing of the new", async () => {
    const forA = certificate("c-a", issue(ca, ["shop.example"]));
    const echo = backend("b", [await stage.backends.echo("b")]);
    const rules = host(shop, "shop.example", [rule({ action: forwardTo("b") })]);
    const plane = await stage.start([http, shop, rules, echo]);
    const old = await stage.sockets.connect(plane.at(80));
    old.write("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    await once(old, "data");
    const left = once(old, "end");
    const nowTls = { ...http, protocol: "tls" } as const;
    await plane.apply({
      upserts: [nowTls, forA, secure(shop.id, nowTls, "shop.example", [forA])],
      removes: [],
    });
    await left;
    const over = { ca: ca.cert, servername: "shop.example" };
    expect((await ask(plane.at(80), { host: "shop.example", tls: over })).seen.backend).toBe("b");
  });

  test("an endpoint that goes away finishes what it has begun and gets nothing new", async () => {
    const held = await holding();
    const plane = await stage.start([
      http,
      shop,
      host(shop, "shop.example", [rule({ action: forwardTo("b") })]),
      backend("b", [held.at]),
    ]);
    const asked = begin(plane.at(80), "shop.example");
    const [response] = (await once(asked, "response")) as [IncomingMessage];
    await plane.apply({ upserts: [backend("b", [await stage.backends.echo("next")])], removes: [] });
    await expect
      .poll(async () => (await ask(plane.at(80), { host: "shop.example" })).seen.backend)
      .toBe("next");
    expect(held.waiting()).toBe(1);
    held.release();
    expect(await textOf(response)).toBe("begun, done");
  });

  onlyIf(traits.endsIdle)("closing lets requests finish within the limit, and no longer", async () => {
    const held = await holding();
    const items = [
      http,
      shop,
      host(shop, "shop.example", [rule({ action: forwardTo("held") })]),
      backend("held", [held.at]),
    ];
    const patient = await stage.start(items);
    const [finished] = (await once(begin(patient.at(80), "shop.example"), "response")) as [IncomingMessage];
    const idle = await stage.sockets.connect(patient.at(80));
    idle.write("GET / HTTP/1.1\r\nHost: other.example\r\n\r\n");
    await once(idle, "data");
    const idleClosed = once(idle, "end");
    const closing = patient.close({ graceMs: 30_000 });
    await idleClosed;
    await expect(ask(patient.at(80), { host: "shop.example" })).rejects.toThrow();
    held.release();
    expect(await textOf(finished)).toBe("begun, done");
    await closing;

    const impatient = await stage.start(items);
    const [cut] = (await once(begin(impatient.at(80), "shop.example"), "response")) as [IncomingMessage];
    await impatient.close({ graceMs: 100 });
    await expect(textOf(cut)).rejects.toThrow();
  });

  test("TCP and UDP ports", async () => {
    const tcp = port(9000, "tcp");
    const udp = port(9001, "udp");
    const echoTcp = await stage.sockets.serve((socket) => socket.pipe(socket));
    const echoUdp = createSocket("udp4").bind(0, "127.0.0.1");
    await once(echoUdp, "listening");
    echoUdp.on("message", (bytes, from) => echoUdp.send(bytes, from.port, from.address));
    const client = createSocket("udp4");
    stage.onRelease(() => {
      echoUdp.close();
      client.close();
    });
    const streams = listener("streams", tcp, "", { protocol: "TCP" });
    const datagrams = listener("datagrams", udp, "", { protocol: "UDP" });
    const plane = await stage.start([
      tcp,
      udp,
      streams,
      datagrams,
      host(streams, "", [rule({ action: forwardTo("tcp"), kind: "TCPRoute" })]),
      host(datagrams, "", [rule({ action: forwardTo("udp"), kind: "UDPRoute" })]),
      backend("tcp", [echoTcp], { protocol: "tcp" }),
      backend("udp", [echoUdp.address().port], { protocol: "udp" }),
    ]);
    const socket = await stage.sockets.connect(plane.at(9000));
    socket.end("over tcp");
    expect(await textOf(socket)).toBe("over tcp");
    client.send("over udp", plane.at(9001), "127.0.0.1");
    const [answer] = (await once(client, "message")) as [Buffer];
    expect(String(answer)).toBe("over udp");
    expect(plane.report("datagrams")).toEqual({ id: "datagrams", state: "programmed" });
  });

  test("takes whatever tenants write without falling over", async () => {
    const odd = listener("odd", http, "odd.example");
    const plane = await stage.start([
      http,
      shop,
      odd,
      host(shop, "shop.example", [rule({ action: forwardTo("b") })]),
      host(odd, "odd.example", [
        rule({ path: { type: "regex", value: "((((" }, action: forwardTo("b") }),
        rule({ path: "/nobody", action: forwardTo("missing") }),
        rule({
          path: "/header",
          action: forwardTo("b", {
            filters: { requestHeaders: [{ op: "set", name: "x y", value: "1\r\n2" }] },
          }),
        }),
        rule({
          path: "/answer",
          action: forwardTo("b", {
            filters: { responseHeaders: [{ op: "set", name: "x-a", value: "1\r\n2" }] },
          }),
        }),
        rule({
          path: "/host",
          action: forwardTo("b", { filters: { rewrite: { hostname: "a b\r\nc: d" } } }),
        }),
        rule({ path: "/nowhere", action: forwardTo("nowhere") }),
        rule({
          path: "/moved",
          action: {
            type: "redirect",
            statusCode: 302,
            filters: { responseHeaders: [{ op: "set", name: "bad name", value: "1" }] },
          },
        }),
        rule({ path: "/status", action: { type: "respond", status: 1, reason: "no status at all" } }),
      ]),
      backend("b", [await stage.backends.echo("b")]),
      backend("nowhere", [], { endpoints: [{ address: "not an address", port: 70_000 }] }),
      certificate("c-odd", { cert: "no certificate", key: "no key" }),
    ]);
    const statusOf = async (path: string): Promise<number> =>
      (await ask(plane.at(80), { host: "odd.example", path })).status;
    expect(await statusOf("/")).toBe(404);
    expect(await statusOf("/nobody")).toBe(503);
    expect(await statusOf("/header")).toBe(500);
    expect(await statusOf("/answer")).toBe(502);
    expect(await statusOf("/host")).toBe(500);
    expect(await statusOf("/nowhere")).toBe(503);
    expect(await statusOf("/moved")).toBe(500);
    expect(await statusOf("/status")).toBe(500);
    expect((await ask(plane.at(80), { host: "shop.example" })).status).toBe(200);
    expect(plane.report("c-odd")).toMatchObject({ state: "rejected" });
  });
}
