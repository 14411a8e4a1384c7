/**
 * Tenants beside each other on one Envoy: every answer is compared with the routing table's own.
 */

import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { RoutingTable } from "../../../src/matching/routing-table.ts";
import type { ListenerItem, PlanItem } from "../../../src/plan/plan.ts";
import { authority, issue } from "../support/certificates.ts";
import { createEnvoy } from "../support/envoy-plane.ts";
import { ask, Backends, textOf } from "../support/http-peers.ts";
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
import { PlaneUnderTest } from "../support/plane-under-test.ts";
import { Sockets } from "../support/sockets.ts";

const ca = authority();
const http = port(80);
const https = port(443, "tls");

describe("tenants on one Envoy", () => {
  const open: PlaneUnderTest[] = [];
  let backends: Backends;
  let sockets: Sockets;

  beforeEach(() => {
    backends = new Backends();
    sockets = new Sockets();
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map((plane) => plane.close()));
    await sockets.release();
    await backends.release();
  });
  const start = async (items: readonly PlanItem[]): Promise<PlaneUnderTest> => {
    const plane = await PlaneUnderTest.start((options) => createEnvoy(options), items);
    open.push(plane);
    return plane;
  };

  /**
   * Nested wildcards, exact names below them, hosts narrower than their listeners, hosts that
   * another listener takes.
   */
  const shapes: readonly { readonly listener: string; readonly hosts: readonly string[] }[] = [
    { listener: "", hosts: ["", "*.deep.test", "only.test"] },
    { listener: "*.example", hosts: ["*.example", "x.example", "b.a.example"] },
    { listener: "*.a.example", hosts: ["*.a.example", "*.c.a.example"] },
    { listener: "a.example", hosts: ["a.example"] },
    { listener: "bare.example", hosts: [] },
  ];
  const names = [
    "a.example",
    "bare.example",
    "x.example",
    "y.example",
    "b.a.example",
    "b.c.a.example",
    "p.q.example",
    "example",
    "only.test",
    "n.deep.test",
    "nobody.test",
  ];

  function tenants(on: typeof http, certificates: boolean): readonly PlanItem[] {
    return shapes.flatMap(({ listener: pattern, hosts }, index) => {
      const id = `${on.port} l${index}`;
      const pair = certificate(`c-${id}`, issue(ca, names));
      const own: ListenerItem = certificates ? secure(id, on, pattern, [pair]) : listener(id, on, pattern);
      const items = hosts.map((name) =>
        // What the narrower host leaves open, the wider one serves.
        host(own, name, [
          rule({ path: name.startsWith("*") || name === "" ? "/" : "/own", action: forwardTo(`to-${id}`) }),
        ]),
      );
      return [own, ...items, ...(certificates ? [pair] : [])];
    });
  }

  test("cleartext: the listener of the name, its most specific host, then its wider ones, and nobody else", async () => {
    const items = [http, ...tenants(http, false), ...(await namedBackends(80))];
    const plane = await start(items);
    const table = new RoutingTable();
    table.apply({ upserts: items, removes: [] });
    for (const name of [...names, "X.EXAMPLE", "a.example:80", "b.A.example."]) {
      for (const path of ["/", "/own"]) {
        const answer = await ask(plane.at(80), {
          host: name,
          path,
          headers: { "x-mergeway-scope": "80/a.example", "x-mergeway-sni": "80/a.example" },
        });
        const got = answer.status === 200 ? answer.seen.backend : answer.status;
        expect(`${name} ${path} ${got}`).toBe(`${name} ${path} ${expected(table, http.id, name, path)}`);
        if (answer.status === 200) {
          expect(Object.keys(answer.seen.headers).filter((each) => each.startsWith("x-mergeway"))).toEqual(
            [],
          );
        }
      }
    }
  });

  test("TLS: 421 when the connection is another listener's, whatever the names, and 404 for nobody's", async () => {
    // Without the listener for all names, so that there are names of nobody.
    const items = [https, ...tenants(https, true), ...(await namedBackends(443))].filter(
      ({ id }) => !id.includes("443 l0"),
    );
    const plane = await start(items);
    const table = new RoutingTable();
    table.apply({ upserts: items, removes: [] });
    for (const servername of names) {
      const connection = table.listenerFor(https.id, servername);
      const tls = { ca: ca.cert, servername };
      if (connection === undefined) {
        await expect(ask(plane.at(443), { host: servername, tls })).rejects.toThrow();
        continue;
      }
      for (const name of [...names, ...names.map((each) => each.toUpperCase())]) {
        const answer = await ask(plane.at(443), {
          host: name,
          path: "/own",
          tls,
          headers: { "x-mergeway-sni": `443/${name}`, "x-mergeway-scope": `443/${servername}` },
        });
        const admission = table.admitHttps(connection.id, name);
        const wanted = "status" in admission ? admission.status : expected(table, https.id, name, "/own");
        const got = answer.status === 200 ? answer.seen.backend : answer.status;
        expect(`${servername} ${name} ${got}`).toBe(`${servername} ${name} ${wanted}`);
      }
    }
  });

  test("a passthrough wildcard leaves exact HTTPS names below it alone, and coming and going of chains closes nothing", async () => {
    const inner = issue(ca, ["*.p.example"]);
    const forA = certificate("c-a", issue(ca, ["a.p.example"]));
    const forB = certificate("c-b", issue(ca, ["b.example"]));
    const through = listener("through", https, "*.p.example", {
      protocol: "TLS",
      tls: { mode: "Passthrough", certificates: [] },
    });
    const a = secure("a", https, "a.p.example", [forA]);
    const b = secure("b", https, "b.example", [forB]);
    const { createServer } = await import("node:https");
    const secret = await backends.listen(
      createServer({ cert: inner.cert, key: inner.key }, (_request, response) => response.end("from inside")),
    );
    const plane = await start([
      https,
      a,
      b,
      forA,
      forB,
      host(a, "a.p.example", [rule({ action: forwardTo("to-a") })]),
      host(b, "b.example", [rule({ action: forwardTo("to-b") })]),
      backend("to-a", [await backends.echo("a")]),
      backend("to-b", [await backends.echo("b")]),
    ]);
    const kept = await openTls(plane.at(443), "b.example");
    await plane.apply({
      upserts: [
        through,
        host(through, "*.p.example", [rule({ action: forwardTo("inside"), kind: "TLSRoute" })]),
        backend("inside", [secret], { protocol: "tcp" }),
      ],
      removes: [],
    });
    const over = (servername: string) => ({ host: servername, tls: { ca: ca.cert, servername } });
    expect((await ask(plane.at(443), over("x.p.example"))).body).toBe("from inside");
    expect((await ask(plane.at(443), over("a.p.example"))).seen.backend).toBe("a");
    await plane.apply({ upserts: [], removes: ["through"] });
    await expect(ask(plane.at(443), over("x.p.example"))).rejects.toThrow();
    expect((await ask(plane.at(443), over("a.p.example"))).seen.backend).toBe("a");
    kept.write("GET / HTTP/1.1\r\nHost: b.example\r\nConnection: close\r\n\r\n");
    expect(await textOf(kept)).toMatch(/^HTTP\/1\.1 200 /);
  });

  test("two TLS ports show their own certificates for one name, each its own client's", async () => {
    const second = port(8443, "tls");
    const first = certificate("c-1", issue(ca, ["a.example"]));
    const other = certificate("c-2", issue(ca, ["a.example", "second.example"]));
    const all = certificate("c-3", issue(ca, ["third.example"]));
    const a = secure("a-443", https, "a.example", [first]);
    const b = secure("a-8443", second, "a.example", [other]);
    const c = secure("all-8443", second, "", [all]);
    const plane = await start([
      https,
      second,
      a,
      b,
      c,
      first,
      other,
      all,
      ...[a, b, c].map((each) => host(each, each.hostname, [rule({ action: forwardTo(`to-${each.id}`) })])),
      ...(await Promise.all([a, b, c].map(async ({ id }) => backend(`to-${id}`, [await backends.echo(id)])))),
    ]);
    const shown = async (at: number, servername: string): Promise<string | undefined> => {
      const socket = await openTls(plane.at(at), servername);
      const names = socket.getPeerCertificate().subjectaltname;
      socket.destroy();
      return names;
    };
    expect(await shown(443, "a.example")).toBe("DNS:a.example");
    expect(await shown(8443, "a.example")).toBe("DNS:a.example, DNS:second.example");
    const served = async (at: number): Promise<string> =>
      (await ask(plane.at(at), { host: "a.example", tls: { ca: ca.cert, servername: "a.example" } })).seen
        .backend;
    expect(await served(443)).toBe("a-443");
    expect(await served(8443)).toBe("a-8443");
    // The lower port gives the name up: the other port may have it by asking again.
    await plane.apply({ upserts: [], removes: ["a-443"] });
    expect(await shown(8443, "a.example")).toBe("DNS:a.example, DNS:second.example");
  });

  test("a stream listener without a good certificate lets nobody in, and holds up nothing of its port", async () => {
    const good = certificate("c-good", issue(ca, ["good.example"]));
    const bad = certificate("c-bad", { cert: "none", key: "none" });
    const terminated = (id: string, name: string, of: typeof good) =>
      listener(id, https, name, { protocol: "TLS", tls: { mode: "Terminate", certificates: [of.id] } });
    const one = terminated("one", "good.example", good);
    const two = terminated("two", "bad.example", bad);
    const echo = await sockets.serve((socket) => socket.pipe(socket));
    const plane = await start([
      https,
      one,
      two,
      good,
      bad,
      host(one, "good.example", [rule({ action: forwardTo("echo"), kind: "TLSRoute" })]),
      host(two, "bad.example", [rule({ action: forwardTo("echo"), kind: "TLSRoute" })]),
      backend("echo", [echo], { protocol: "tcp" }),
    ]);
    expect(plane.report("one")).toEqual({ id: "one", state: "programmed" });
    expect(plane.report("two")).toMatchObject({ state: "rejected", reason: "InvalidCertificate" });
    const socket = await openTls(plane.at(443), "good.example");
    socket.write("through");
    expect(String((await once(socket, "data"))[0])).toBe("through");
    await expect(openTls(plane.at(443), "bad.example")).rejects.toThrow();
    await plane.apply({ upserts: [certificate("c-bad", issue(ca, ["bad.example"]))], removes: [] });
    await plane.until(() => plane.report("two")?.state === "programmed");
    const mended = await openTls(plane.at(443), "bad.example");
    mended.write("mended");
    expect(String((await once(mended, "data"))[0])).toBe("mended");
  });

  test("datagrams are shared out by weight", async () => {
    const udp = port(9001, "udp");
    const datagrams = listener("datagrams", udp, "", { protocol: "UDP" });
    const servers = ["a", "b"].map((name) => {
      const server = createSocket("udp4").bind(0, "127.0.0.1");
      server.on("message", (_bytes, from) => server.send(name, from.port, from.address));
      return server;
    });
    await Promise.all(servers.map((server) => once(server, "listening")));
    const plane = await start([
      udp,
      datagrams,
      host(datagrams, "", [
        rule({
          kind: "UDPRoute",
          action: forwardTo([
            { backend: "a", weight: 1, filters: {} },
            { backend: "b", weight: 3, filters: {} },
          ]),
        }),
      ]),
      ...servers.map((server, index) =>
        backend(index === 0 ? "a" : "b", [server.address().port], { protocol: "udp" }),
      ),
    ]);
    const counts = new Map<string, number>();
    for (let round = 0; round < 80; round++) {
      const client = createSocket("udp4");
      client.send("x", plane.at(9001), "127.0.0.1");
      const [answer] = (await once(client, "message")) as [Buffer];
      counts.set(String(answer), (counts.get(String(answer)) ?? 0) + 1);
      client.close();
    }
    for (const server of servers) server.close();
    expect(counts.get("a")).toBeGreaterThan(5);
    expect(counts.get("b")).toBeGreaterThan(40);
  });

  async function openTls(at: number, servername: string): Promise<TLSSocket> {
    const socket = connectTls({ port: at, host: "127.0.0.1", servername, ca: ca.cert });
    sockets.keep(socket);
    await Promise.race([
      once(socket, "secureConnect"),
      once(socket, "close").then(() => Promise.reject(new Error("closed"))),
    ]);
    return socket;
  }

  async function namedBackends(at: number): Promise<readonly PlanItem[]> {
    const all: PlanItem[] = [];
    for (const index of shapes.keys())
      all.push(backend(`to-${at} l${index}`, [await backends.echo(`to-${at} l${index}`)]));
    return all;
  }
});

function expected(table: RoutingTable, portId: string, name: string, path: string): string | number {
  const admission = table.admitHttp(portId, name);
  if ("status" in admission) return admission.status;
  const request = { method: "GET", path, query: "", header: () => undefined };
  const found = table.matchRule(admission.listener.id, name, request);
  return found?.action.type === "forward" ? (found.action.backends[0]?.backend ?? 500) : 404;
}
