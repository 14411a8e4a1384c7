/** Tenants beside each other on one Envoy: every answer is compared with the routing table's own. */

import { once } from "node:events";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { RoutingTable } from "../../src/matching/routing-table.ts";
import type { ListenerItem, PlanItem } from "../../src/plan/plan.ts";
import { authority, issue } from "./certificates.ts";
import { createEnvoy } from "./envoy-plane.ts";
import { ask, Backends, textOf } from "./http-peers.ts";
import { backend, certificate, forwardTo, host, listener, port, rule, secure } from "./plan-builder.ts";
import { PlaneUnderTest } from "./plane-under-test.ts";
import { Sockets } from "./sockets.ts";

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

  /** Nested wildcards, exact names below them, hosts narrower than their listeners, hosts that another listener takes. */
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
      for (const name of names) {
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

  async function openTls(at: number, servername: string): Promise<TLSSocket> {
    const socket = connectTls({ port: at, host: "127.0.0.1", servername, ca: ca.cert });
    sockets.keep(socket);
    await once(socket, "secureConnect");
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
