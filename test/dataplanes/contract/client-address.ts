import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { connect as connectSocket } from "node:net";
import { connect as connectTls, createServer as createTlsServer } from "node:tls";
import { expect, test } from "vitest";
import type { ClientAddressPlan } from "../../../src/plan/client-address.ts";
import type { PlanItem, PortItem } from "../../../src/plan/plan.ts";
import { authority, issue } from "../support/certificates.ts";
import { type Answer, type Ask, ask, type Seen, textOf } from "../support/http-peers.ts";
import {
  backend,
  certificate,
  forwardTo,
  guard,
  host,
  listener,
  port,
  rule,
  secure,
} from "../support/plan-builder.ts";
import type { CreateDataPlane, PlaneUnderTest } from "../support/plane-under-test.ts";
import { proxyField, proxyFrame, proxyFrameOf, proxyLine } from "../support/proxy-protocol.ts";
import { readAll } from "../support/sockets.ts";
import { setStage } from "./stage.ts";
import type { Traits } from "./traits.ts";

const request = Buffer.from("GET / HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n");

/** How a port finds the address of a client that is behind proxies. */
export function describeClientAddress(create: CreateDataPlane, traits: Traits): void {
  const stage = setStage(create);
  const portWith = (clientAddress: ClientAddressPlan | undefined): PortItem =>
    port(80, "http", clientAddress === undefined ? {} : { clientAddress });
  /** `/open` is for everybody, everything else for 192.0.2.1 and 2001:db8::1 only. */
  const start = async (clientAddress: ClientAddressPlan): Promise<PlaneUnderTest> => {
    const http = portWith(clientAddress);
    const shop = listener("shop", http, "shop.example");
    return stage.start([
      http,
      shop,
      guard("g", { type: "addresses", allow: ["192.0.2.1/32", "2001:db8::1/128"] }),
      host(shop, "shop.example", [
        rule({ path: "/open", action: forwardTo("b") }),
        rule({ path: "/", action: forwardTo("b"), guards: ["g"] }),
      ]),
      backend("b", [await stage.backends.echo("b")]),
    ]);
  };
  /** Each piece in a packet of its own; gives what comes back, "" when the connection is closed. */
  const talk = async (at: number, ...pieces: readonly Buffer[]): Promise<string> => {
    const socket = await stage.sockets.connect(at);
    for (const piece of pieces) {
      socket.write(piece);
      await new Promise((resolve) => setTimeout(resolve, pieces.length > 1 ? 20 : 0));
    }
    return await readAll(socket).then(String, () => "");
  };
  const statusOf = (answer: string): string => /^HTTP\/1\.1 (\d+)/.exec(answer)?.[1] ?? "closed";
  const seenIn = (answer: string): Seen =>
    JSON.parse(answer.slice(answer.indexOf("{"), answer.lastIndexOf("}") + 1)) as Seen;
  const askAs = (plane: PlaneUnderTest, forwardedFor: string, more: Partial<Ask> = {}): Promise<Answer> =>
    ask(plane.at(80), { host: "shop.example", headers: { "x-forwarded-for": forwardedFor }, ...more });
  const statusFor = async (plane: PlaneUnderTest, list: string, more?: Partial<Ask>): Promise<number> =>
    (await askAs(plane, list, more)).status;

  test("a header of the PROXY protocol names the client, in both versions", async () => {
    const plane = await start({ proxyProtocol: "required" });
    const fields = Buffer.concat([
      proxyField(0x02, Buffer.from("shop.example")),
      proxyField(0xea, Buffer.alloc(300, 1)),
    ]);
    for (const header of [
      proxyLine("192.0.2.1"),
      proxyLine("2001:db8::1"),
      proxyFrameOf("192.0.2.1"),
      proxyFrameOf("192.0.2.1", fields),
      proxyFrameOf("2001:db8:0:0:0:0:0:1"),
      proxyFrameOf("0:0:0:0:0:ffff:c000:201"),
    ]) {
      const answer = await talk(plane.at(80), Buffer.concat([header, request]));
      expect(statusOf(answer), String(header)).toBe("200");
      // IPv4 that is mapped to IPv6 may be passed on as it came.
      expect(seenIn(answer).headers["x-forwarded-for"]).toMatch(/^((::ffff:)?192\.0\.2\.1|2001:db8::1)$/);
    }
    for (const header of [
      proxyLine("192.0.2.2"),
      proxyLine("2001:db8::2"),
      proxyFrameOf("192.0.2.2"),
      proxyFrameOf("2001:db8:0:0:0:0:0:2", fields),
    ]) {
      expect(statusOf(await talk(plane.at(80), Buffer.concat([header, request])))).toBe("403");
    }
    const { client } = await plane.record(({ status }) => status === 403);
    expect(client).toBe("192.0.2.2");
  });

  test("a header may come in pieces, and stay alone for a while", async () => {
    const plane = await start({ proxyProtocol: "required" });
    const fields = proxyField(0x04, Buffer.alloc(20));
    for (const header of [proxyLine("192.0.2.1"), proxyFrameOf("192.0.2.1", fields)]) {
      for (const cut of [1, 5, 13, 17, header.length - 1, header.length]) {
        const pieces = [header.subarray(0, cut), Buffer.concat([header.subarray(cut), request])];
        expect(statusOf(await talk(plane.at(80), ...pieces)), String(cut)).toBe("200");
      }
    }
  });

  test("a local connection, and one of an unknown client, are those of the peer", async () => {
    const plane = await start({ proxyProtocol: "required" });
    const own = guard("g", { type: "addresses", allow: ["127.0.0.1/32"] });
    await plane.apply({ upserts: [own], removes: [] });
    const addresses = proxyFrameOf("192.0.2.1").subarray(16);
    for (const header of [
      Buffer.from("PROXY UNKNOWN\r\n"),
      Buffer.from("PROXY UNKNOWN 192.0.2.1 192.0.2.2 1 2\r\n"),
      proxyFrame(0, 0x00, Buffer.alloc(0)),
      proxyFrame(0, 0x11, addresses),
      ...(traits.servesUnspecified ? [proxyFrame(1, 0x00, Buffer.alloc(0))] : []),
    ]) {
      const answer = await talk(plane.at(80), Buffer.concat([header, request]));
      expect(statusOf(answer), String(header)).toBe("200");
      expect(seenIn(answer).headers["x-forwarded-for"]).toBe("127.0.0.1");
    }
  });

  test("a connection without the header that is required, or with a broken one, is closed", async () => {
    const plane = await start({ proxyProtocol: "required" });
    const broken: readonly Buffer[] = [
      Buffer.alloc(0),
      Buffer.from("PROXY\r\n"),
      Buffer.from("proxy TCP4 192.0.2.1 192.0.2.2 1 2\r\n"),
      Buffer.from("PROXY TCP5 192.0.2.1 192.0.2.2 1 2\r\n"),
      Buffer.from("PROXY TCP4 192.0.2.1 192.0.2.2 1\r\n"),
      Buffer.from("PROXY TCP4 192.0.2.300 192.0.2.2 1 2\r\n"),
      Buffer.from("PROXY TCP4 2001:db8::1 2001:db8::2 1 2\r\n"),
      Buffer.from("PROXY TCP6 192.0.2.1 192.0.2.2 1 2\r\n"),
      Buffer.from("PROXY TCP4 192.0.2.1 192.0.2.2 1 65536\r\n"),
      Buffer.from(`PROXY TCP4 192.0.2.1 192.0.2.2 1 2${" ".repeat(100)}\r\n`),
      proxyFrame(1, 0x11, Buffer.alloc(11)),
      proxyFrame(1, 0x21, Buffer.alloc(35)),
      proxyFrame(2, 0x11, Buffer.alloc(12)),
    ];
    for (const header of broken) {
      const answer = await talk(plane.at(80), Buffer.concat([header, request]));
      // Envoy answers what it takes for a request that cannot be read.
      expect(["closed", "400"], String(header)).toContain(statusOf(answer));
    }
  });

  test("where the header is optional, a connection without it is the peer's", async () => {
    const plane = await start({ proxyProtocol: "optional" });
    const own = guard("g", { type: "addresses", allow: ["127.0.0.1/32"] });
    expect(statusOf(await talk(plane.at(80), Buffer.concat([proxyLine("192.0.2.1"), request])))).toBe("200");
    expect(statusOf(await talk(plane.at(80), Buffer.concat([proxyFrameOf("192.0.2.1"), request])))).toBe(
      "200",
    );
    expect((await ask(plane.at(80), { host: "shop.example" })).status).toBe(403);
    await plane.apply({ upserts: [own], removes: [] });
    expect((await ask(plane.at(80), { host: "shop.example" })).status).toBe(200);
    // Both the preface of HTTP/2 and the header begin with "PR".
    const session = connectHttp2(`http://127.0.0.1:${plane.at(80)}`);
    stage.onRelease(() => session.destroy());
    const [head] = await once(session.request({ ":path": "/", ":authority": "shop.example" }), "response");
    expect(head).toMatchObject({ ":status": 200 });
  });

  test("over TLS and on TCP ports the header comes first as well", async () => {
    const clientAddress: ClientAddressPlan = { proxyProtocol: "required" };
    const tls = port(443, "tls", { clientAddress });
    const tcp = port(7000, "tcp", { clientAddress });
    const ca = authority();
    const forA = certificate("c-a", issue(ca, ["a.example"]));
    const a = secure("a", tls, "a.example", [forA]);
    const open = listener("open", tcp, "", { protocol: "TCP" });
    const through = listener("through", tls, "t.example", {
      protocol: "TLS",
      tls: { mode: "Passthrough", certificates: [] },
    });
    const at = await stage.sockets.serve((socket) => {
      socket.once("data", (bytes: Buffer) => socket.end(`${bytes[0]}`));
    });
    const behind = await stage.backends.listen(
      createTlsServer(issue(ca, ["t.example"]), (socket) => socket.end("passed through")),
    );
    const items: PlanItem[] = [
      tls,
      tcp,
      a,
      open,
      through,
      forA,
      guard("g", { type: "addresses", allow: ["192.0.2.1/32"] }),
      host(a, "a.example", [rule({ action: forwardTo("b"), guards: ["g"] })]),
      host(open, "", [rule({ action: forwardTo("s"), kind: "TCPRoute", guards: ["g"] })]),
      host(through, "t.example", [rule({ action: forwardTo("t"), kind: "TLSRoute", guards: ["g"] })]),
      backend("b", [await stage.backends.echo("b")]),
      backend("s", [at], { protocol: "tcp" }),
      backend("t", [behind], { protocol: "tcp" }),
    ];
    const plane = await stage.start(items);
    const secured = async (header: Buffer, name: string): Promise<string> => {
      const socket = stage.sockets.keep(connectSocket({ host: "127.0.0.1", port: plane.at(443) }));
      await once(socket, "connect");
      socket.write(header);
      const stream = connectTls({ socket, servername: name, ca: ca.cert });
      stream.on("error", () => {});
      stream.write(`GET / HTTP/1.1\r\nHost: ${name}\r\nConnection: close\r\n\r\n`);
      return await textOf(stream).catch(() => "");
    };
    const answer = await secured(proxyLine("192.0.2.1"), "a.example");
    expect(statusOf(answer)).toBe("200");
    expect(seenIn(answer).headers).toMatchObject({
      "x-forwarded-for": "192.0.2.1",
      "x-forwarded-proto": "https",
    });
    expect(statusOf(await secured(proxyFrameOf("192.0.2.2"), "a.example"))).toBe("403");
    expect(await secured(proxyFrameOf("192.0.2.1"), "t.example")).toBe("passed through");
    expect(await secured(proxyLine("192.0.2.2"), "t.example")).toBe("");

    expect(await talk(plane.at(7000), proxyLine("192.0.2.1"), Buffer.from("A"))).toBe("65");
    expect(await talk(plane.at(7000), Buffer.concat([proxyFrameOf("192.0.2.1"), Buffer.from("B")]))).toBe(
      "66",
    );
    expect(await talk(plane.at(7000), Buffer.concat([proxyFrameOf("192.0.2.2"), Buffer.from("B")]))).toBe("");
    expect(await talk(plane.at(7000), Buffer.from("B".repeat(200)))).toBe("");
  });

  test("with hops, the client is the entry that the outermost of the proxies has written", async () => {
    const one = await start({ forwardedFor: { hops: 1 } });
    expect(await statusFor(one, "192.0.2.1")).toBe(200);
    expect(await statusFor(one, "192.0.2.9, 192.0.2.1")).toBe(200);
    expect(await statusFor(one, "192.0.2.1, 192.0.2.9")).toBe(403);
    const record = await one.record(({ status }) => status === 403);
    expect(record.client).toBe("192.0.2.9");
    const { seen } = await askAs(one, "192.0.2.9,192.0.2.1");
    expect(seen.headers["x-forwarded-for"]).toMatch(/^192\.0\.2\.9, ?192\.0\.2\.1, ?127\.0\.0\.1$/);

    const two = await start({ forwardedFor: { hops: 2 } });
    expect(await statusFor(two, "192.0.2.1, 203.0.113.1")).toBe(200);
    expect(await statusFor(two, "192.0.2.9, 192.0.2.1, 203.0.113.1")).toBe(200);
    expect(await statusFor(two, "192.0.2.9, 192.0.2.1")).toBe(403);
    expect(await statusFor(two, "192.0.2.1, 192.0.2.9, 203.0.113.1")).toBe(403);
  });

  test("with hops, a list that is too short ends at its outermost entry, not at the peer", async () => {
    const hidden = { proxyProtocol: "optional" } as const;
    for (const clientAddress of [{ forwardedFor: { hops: 2 } }, { forwardedFor: { hops: 32 }, ...hidden }]) {
      const plane = await start(clientAddress);
      expect(await statusFor(plane, "192.0.2.1")).toBe(200);
      await plane.apply({
        upserts: [guard("g", { type: "addresses", allow: ["127.0.0.1/32"] })],
        removes: [],
      });
      expect(await statusFor(plane, "198.51.100.66")).toBe(403);
      const record = await plane.record(({ status }) => status === 403);
      expect(record.client).toBe("198.51.100.66");
      // Without a list, or with none that can be read, the peer is all that is known.
      expect(await statusFor(plane, "unknown")).toBe(200);
      expect((await ask(plane.at(80), { host: "shop.example" })).status).toBe(200);
    }
  });

  test("with networks, the client is the first address that is no proxy, from the peer outwards", async () => {
    const networks = ["127.0.0.1/32", "203.0.113.0/24", "2001:db8:ffff::/48"];
    const plane = await start({ forwardedFor: { networks } });
    expect(await statusFor(plane, "192.0.2.1")).toBe(200);
    expect(await statusFor(plane, "192.0.2.1, 203.0.113.5, 2001:db8:ffff::9")).toBe(200);
    expect(await statusFor(plane, "192.0.2.9, 192.0.2.1, 203.0.113.5")).toBe(200);
    expect(await statusFor(plane, "192.0.2.1, 198.51.100.1")).toBe(403);
    expect(await statusFor(plane, "192.0.2.1, 198.51.100.1, 203.0.113.5")).toBe(403);
    const kept = await askAs(plane, "192.0.2.1, 203.0.113.5", { path: "/open" });
    expect(kept.seen.headers["x-forwarded-for"]).toMatch(/^192\.0\.2\.1, ?203\.0\.113\.5, ?127\.0\.0\.1$/);
  });

  test("a peer that is no proxy cannot say who it is, nor anything else of its connection", async () => {
    const plane = await start({ forwardedFor: { networks: ["127.0.0.1/32"] } });
    const headers = {
      "x-forwarded-for": "192.0.2.1",
      "x-forwarded-proto": "https",
      "x-forwarded-host": "forged",
    };
    const more = { host: "shop.example", headers, from: "127.0.0.2" };
    expect((await ask(plane.at(80), more)).status).toBe(403);
    const { seen } = await ask(plane.at(80), { ...more, path: "/open" });
    expect(seen.headers).toMatchObject({
      "x-forwarded-for": "127.0.0.2",
      "x-forwarded-proto": "http",
      "x-forwarded-host": "shop.example",
    });
    const trusted = await ask(plane.at(80), { ...more, path: "/open", from: "127.0.0.1" });
    expect(trusted.seen.headers).toMatchObject({
      "x-forwarded-proto": "https",
      "x-forwarded-host": "forged",
    });
  });

  test("an entry that is no address ends the search before whatever stands behind it", async () => {
    const networks = await start({ forwardedFor: { networks: ["127.0.0.1/32", "203.0.113.0/24"] } });
    const hops = await start({ forwardedFor: { hops: 2 } });
    for (const entry of ["unknown", "", "203.0.113", "203.0.113.1/32", "_hidden", "203.0.113.05", "0x7f.1"]) {
      expect(await statusFor(networks, `192.0.2.1, ${entry}`), entry).toBe(403);
      expect(await statusFor(networks, `192.0.2.1, ${entry}, 203.0.113.7`), entry).toBe(403);
      expect(await statusFor(hops, `192.0.2.1, ${entry}, 203.0.113.7`), entry).toBe(403);
    }
  });

  test("the PROXY protocol names the first address to look at in X-Forwarded-For", async () => {
    const plane = await start({ proxyProtocol: "required", forwardedFor: { networks: ["203.0.113.0/24"] } });
    const as = async (peer: string, list: string): Promise<string> => {
      const text = `GET / HTTP/1.1\r\nHost: shop.example\r\nX-Forwarded-For: ${list}\r\nConnection: close\r\n\r\n`;
      return statusOf(await talk(plane.at(80), Buffer.concat([proxyLine(peer), Buffer.from(text)])));
    };
    expect(await as("203.0.113.1", "192.0.2.1")).toBe("200");
    expect(await as("198.51.100.1", "192.0.2.1")).toBe("403");
    expect(await as("192.0.2.1", "198.51.100.1")).toBe("200");
  });

  test("a change holds for new connections", async () => {
    const plane = await start({ forwardedFor: { hops: 1 } });
    expect(await statusFor(plane, "192.0.2.1")).toBe(200);
    await plane.apply({ upserts: [portWith(undefined)], removes: [] });
    expect(await statusFor(plane, "192.0.2.1")).toBe(403);
    await plane.apply({ upserts: [portWith({ proxyProtocol: "required" })], removes: [] });
    expect(statusOf(await talk(plane.at(80), Buffer.concat([proxyLine("192.0.2.1"), request])))).toBe("200");
    await plane.apply({ upserts: [portWith({ forwardedFor: { hops: 1 } })], removes: [] });
    expect(await statusFor(plane, "192.0.2.1")).toBe(200);
  });
}
