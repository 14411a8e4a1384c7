import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { describe, expect, test } from "vitest";
import { createEmbeddedDataPlane } from "../../../../src/dataplanes/embedded/embedded-data-plane.ts";
import type { ClientAddressPlan } from "../../../../src/plan/client-address.ts";
import type { PlanItem, PortItem } from "../../../../src/plan/plan.ts";
import { setStage } from "../../contract/stage.ts";
import { ask, type Seen, textOf } from "../../support/http-peers.ts";
import { backend, forwardTo, host, listener, port, rule } from "../../support/plan-builder.ts";
import type { PlaneOptions, PlaneUnderTest } from "../../support/plane-under-test.ts";
import { proxyLine } from "../../support/proxy-protocol.ts";
import { readAll } from "../../support/sockets.ts";

const portWith = (clientAddress?: ClientAddressPlan): PortItem =>
  port(80, "http", clientAddress === undefined ? {} : { clientAddress });

/** Exactly which address a request is said to come from, as far as data planes may differ in it. */
describe("addresses of clients of the embedded data plane", () => {
  const stage = setStage((options) => createEmbeddedDataPlane({ ...options, workers: 0 }));
  const start = async (
    clientAddress: ClientAddressPlan | undefined,
    options: Partial<PlaneOptions> = {},
  ): Promise<PlaneUnderTest> => {
    const http = portWith(clientAddress);
    const shop = listener("shop", http, "shop.example");
    const items: PlanItem[] = [
      http,
      shop,
      host(shop, "shop.example", [rule({ action: forwardTo("b") })]),
      backend("b", [await stage.backends.echo("b")]),
    ];
    return stage.start(items, options);
  };
  let asked = 0;
  const clientFor = async (plane: PlaneUnderTest, list: string | string[] | undefined): Promise<string> => {
    const path = `/${asked++}`;
    const headers = list === undefined ? {} : { "x-forwarded-for": list };
    await ask(plane.at(80), { host: "shop.example", path, headers });
    return (await plane.record((record) => record.path === path)).client;
  };

  test("with hops, a list that is too short gives its first entry, and none gives the peer", async () => {
    const plane = await start({ forwardedFor: { hops: 3 } });
    expect(await clientFor(plane, "192.0.2.9, 192.0.2.1, 192.0.2.2, 192.0.2.3")).toBe("192.0.2.1");
    expect(await clientFor(plane, "192.0.2.1, 192.0.2.2, 192.0.2.3")).toBe("192.0.2.1");
    expect(await clientFor(plane, "192.0.2.2, 192.0.2.3")).toBe("192.0.2.2");
    expect(await clientFor(plane, undefined)).toBe("127.0.0.1");
    expect(await clientFor(plane, ["192.0.2.1", "192.0.2.2,192.0.2.3"])).toBe("192.0.2.1");
    expect(await clientFor(plane, ["192.0.2.1,192.0.2.2", "192.0.2.3"])).toBe("192.0.2.1");
  });

  test("an entry that is no address ends the search at the address before it", async () => {
    const plane = await start({ forwardedFor: { networks: ["127.0.0.0/8", "203.0.113.0/24"] } });
    expect(await clientFor(plane, "192.0.2.1, unknown, 203.0.113.2, 203.0.113.1")).toBe("203.0.113.2");
    expect(await clientFor(plane, "192.0.2.1, unknown")).toBe("127.0.0.1");
    for (const entry of ["", ",", ", ", "203.0.113.1:80", "[2001:db8::1]", "fe80::1%1", "a".repeat(5_000)]) {
      expect(await clientFor(plane, `192.0.2.1,${entry}`), entry).toBe("127.0.0.1");
    }
    // Nobody but proxies: the outermost of them is all that is known.
    expect(await clientFor(plane, "203.0.113.3, 203.0.113.2")).toBe("203.0.113.3");
    expect(await clientFor(plane, "::ffff:192.0.2.1")).toBe("192.0.2.1");
    expect(await clientFor(plane, "2001:DB8::1,\t203.0.113.1")).toBe("2001:DB8::1");
  });

  test("a list of networks with something else in it trusts nobody", async () => {
    const plane = await start({ forwardedFor: { networks: ["127.0.0.0/8", "nonsense"] } });
    expect(await clientFor(plane, "192.0.2.1")).toBe("127.0.0.1");
    await plane.apply({ upserts: [portWith({ forwardedFor: { hops: 0 } })], removes: [] });
    expect(await clientFor(plane, "192.0.2.1")).toBe("127.0.0.1");
  });

  test("the option of the data plane is for ports that say nothing themselves", async () => {
    const plane = await start(undefined, { trustedHops: 1 });
    expect(await clientFor(plane, "192.0.2.9, 192.0.2.1")).toBe("192.0.2.1");
    await plane.apply({ upserts: [portWith({})], removes: [] });
    expect(await clientFor(plane, "192.0.2.9, 192.0.2.1")).toBe("127.0.0.1");
    await plane.apply({ upserts: [portWith({ forwardedFor: { hops: 2 } })], removes: [] });
    expect(await clientFor(plane, "192.0.2.9, 192.0.2.1")).toBe("192.0.2.9");
  });

  test("the header of a tunnel's connector names the client of ports that say nothing themselves", async () => {
    const plane = await start(undefined, { trustedHops: { clientHeader: "cf-connecting-ip" } });
    const headers = { "cf-connecting-ip": "192.0.2.7", "x-forwarded-for": "192.0.2.9" };
    const { seen } = await ask(plane.at(80), { host: "shop.example", headers });
    expect(seen.headers).toMatchObject({ "x-forwarded-for": "192.0.2.7", "x-forwarded-port": "443" });
    expect((await plane.record(() => true)).client).toBe("192.0.2.7");
  });

  test("a connection that is open goes on as it began when its port changes", async () => {
    const plane = await start({ forwardedFor: { hops: 1 } });
    const session = connectHttp2(`http://127.0.0.1:${plane.at(80)}`);
    stage.onRelease(() => session.destroy());
    const seen = async (): Promise<Seen> => {
      const headers = { ":path": "/", ":authority": "shop.example", "x-forwarded-for": "192.0.2.1" };
      return JSON.parse(await textOf(session.request(headers))) as Seen;
    };
    expect((await seen()).headers["x-forwarded-for"]).toBe("192.0.2.1, 127.0.0.1");
    await plane.apply({ upserts: [portWith({ proxyProtocol: "required" })], removes: [] });
    expect((await seen()).headers["x-forwarded-for"]).toBe("192.0.2.1, 127.0.0.1");
    expect(session.closed).toBe(false);
  });

  test("the same connection serves many requests behind one header", async () => {
    const plane = await start({ proxyProtocol: "required" });
    const socket = await stage.sockets.connect(plane.at(80));
    const text = "GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n";
    socket.write(Buffer.concat([proxyLine("192.0.2.1"), Buffer.from(text.repeat(3))]));
    let heard = "";
    socket.on("data", (bytes) => {
      heard += String(bytes);
    });
    await expect.poll(() => heard.match(/"x-forwarded-for":"192\.0\.2\.1"/g)?.length).toBe(3);
    // A second header is no request.
    socket.write(`${proxyLine("192.0.2.2")}\r\n`);
    await once(socket, "end");
    expect(heard).toMatch(/HTTP\/1\.1 400 /);
  });

  test("on a TCP port, the end of a client that says nothing behind its header reaches the backend", async () => {
    const tcp = port(7000, "tcp", { clientAddress: { proxyProtocol: "required" } });
    const open = listener("open", tcp, "", { protocol: "TCP" });
    const at = await stage.sockets.serve((socket) => {
      socket.resume().on("end", () => socket.end("heard the end"));
    });
    const plane = await stage.start([
      tcp,
      open,
      host(open, "", [rule({ action: forwardTo("s"), kind: "TCPRoute" })]),
      backend("s", [at], { protocol: "tcp" }),
    ]);
    for (let round = 0; round < 20; round++) {
      const socket = await stage.sockets.connect(plane.at(7000));
      socket.end(proxyLine("192.0.2.1"));
      expect(String(await readAll(socket))).toBe("heard the end");
    }
  });

  test("a header that does not come in time ends the connection", async () => {
    const plane = await start({ proxyProtocol: "required" }, { limits: { headerTimeoutMs: 100 } });
    const socket = await stage.sockets.connect(plane.at(80));
    socket.resume().write("PROXY TCP4 ");
    await once(socket, "end");
  });
});
