/**
 * What tenants and clients get behind a tunnel: true statuses, isolation by Host alone, schemes,
 * headers, gRPC, WebSockets.
 */
import { createServer } from "node:http2";
import { type AddressInfo, connect } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { selfSigned } from "../support/certificates.ts";
import { ask } from "../support/http-peers.ts";
import { Bed, serviceAt } from "./support/bed.ts";
import { type Entry, gateway, grpcRoute, httpRoute, listenerSet, tlsSecret } from "./support/manifests.ts";

let bed: Bed;
beforeEach(async () => {
  bed = await Bed.start();
});
afterEach(() => bed.close());

const HTTPS = { port: 443, protocol: "HTTPS", tls: { certificateRefs: [{ name: "cert" }] } } as const;
const CERTIFICATE = selfSigned(["*.example.com"]);
const cert = (namespace: string): string => tlsSecret(namespace, "cert", CERTIFICATE);
const web = (hostname: string, more: Partial<Entry> = {}): Entry => ({ name: "web", hostname, ...more });

async function serve(...documents: readonly string[]): Promise<string> {
  bed.apply(...documents);
  await bed.gatewaySays("Programmed=True Programmed");
  await bed.edge.until(() => bed.edge.applied.length > 0);
  return bed.tunnel().id;
}

describe("Programmed follows connectors", () => {
  test("it is pending when the last one leaves and programmed when one comes back; the address stays", async () => {
    const id = await serve(gateway());
    const address = bed.status("Gateway/infra/edge")["addresses"];
    bed.edge.accepting = false;
    bed.edge.disconnect(id);
    await bed.gatewaySays("Programmed=False Pending");
    expect(bed.conditions("Gateway/infra/edge", "platform")).toContain("Programmed=False Pending");
    expect(bed.status("Gateway/infra/edge")["addresses"]).toEqual(address);
    bed.edge.accepting = true;
    await bed.gatewaySays("Programmed=True Programmed");
  });

  test("a tunnel's secret that the edge does not know never becomes programmed", async () => {
    const { id } = bed.api.add("test.infra.edge");
    const stale = { a: bed.api.account, t: id, s: Buffer.alloc(32, 7).toString("base64") };
    bed.api.tokenOf = () => Buffer.from(JSON.stringify(stale)).toString("base64");
    bed.apply(gateway());
    await bed.until(() => JSON.stringify(bed.status("Gateway/infra/edge")).includes("cloudflared has ended"));
    expect(bed.edge.refused).toContain(id);
    expect(bed.conditions("Gateway/infra/edge")).toContain("Programmed=False Pending");
  });
});

describe("isolation", () => {
  test("what a tenant leaves open is not taken by a wider listener", async () => {
    const id = await serve(
      gateway([{ name: "all", hostname: "*.example.com", allowedRoutes: { namespaces: { from: "All" } } }]),
      listenerSet("team", [web("team.example.com")]),
      httpRoute("team", { rules: [{ path: "/own", backend: "app" }] }),
      gatewayRoute("wide", "app"),
      await bed.backend("team", "app"),
      await bed.backend("infra", "app"),
    );
    expect((await bed.edge.fetch(id, { host: "team.example.com", path: "/own" })).status).toBe(200);
    expect((await bed.edge.fetch(id, { host: "team.example.com", path: "/other" })).status).toBe(404);
    expect((await bed.edge.fetch(id, { host: "else.example.com", path: "/other" })).status).toBe(200);
  });

  const HEADERS = [
    "x-original-host",
    "x-forwarded-host",
    "forwarded",
    "x-host",
    "x-rewrite-url",
    "x-forwarded-server",
  ];
  test.each(HEADERS)("%s does not choose another tenant's routes", async (name) => {
    const id = await serve(
      gateway(),
      listenerSet("team-a", [web("a.example.com")]),
      listenerSet("team-b", [web("b.example.com")]),
      httpRoute("team-a", { rules: [{ backend: "app" }] }),
      httpRoute("team-b", { rules: [{ backend: "app" }] }),
      await bed.backend("team-a", "app"),
      await bed.backend("team-b", "app"),
    );
    const value = name === "forwarded" ? "host=b.example.com" : "b.example.com";
    const answer = await bed.edge.fetch(id, { host: "a.example.com", headers: { [name]: value } });
    const seen = JSON.parse(answer.body) as { backend: string; headers: Record<string, string> };
    expect(seen.backend).toBe("team-a/app");
    expect(seen.headers["x-forwarded-host"]).toBe("a.example.com");
    expect(seen.headers["forwarded"]).toBeUndefined();
  });

  test("two Gateways with one hostname have a tunnel and a port each", async () => {
    const other = gateway([web("team.example.com")]).replace("name: edge", "name: second");
    const id = await serve(
      gateway([web("team.example.com")]),
      other,
      gatewayRoute("first", "app"),
      await bed.backend("infra", "app"),
    );
    await bed.gatewaySays("Programmed=True Programmed", "Gateway/infra/second");
    await bed.edge.until(() => bed.edge.applied.length >= 4);
    expect((await bed.edge.fetch(id, { host: "team.example.com" })).status).toBe(200);
    expect((await bed.edge.fetch(bed.tunnel("infra/second").id, { host: "team.example.com" })).status).toBe(
      404,
    );
  });
});

describe("one hostname, no ports", () => {
  test("the earlier owner keeps the name, whatever port and protocol a later one chooses; the next takes over", async () => {
    const first = [
      listenerSet("first", [web("a.example.com")], "2026-01-01T00:00:00Z"),
      httpRoute("first", { rules: [{ backend: "app" }] }),
    ];
    const rest = [
      gateway(),
      listenerSet("second", [web("a.example.com", HTTPS)], "2026-02-01T00:00:00Z"),
      httpRoute("second", { rules: [{ backend: "app" }] }),
      cert("second"),
      await bed.backend("first", "app"),
      await bed.backend("second", "app"),
    ];
    const id = await serve(...first, ...rest);
    await bed.until(() =>
      bed.conditions("ListenerSet/second/second", "web").includes("Programmed=False HostnameTaken"),
    );
    expect(await backendOf(id, "a.example.com")).toBe("first/app");
    bed.apply(...rest);
    await bed.until(() =>
      bed.conditions("ListenerSet/second/second", "web").includes("Programmed=True Programmed"),
    );
    expect(await backendOf(id, "a.example.com")).toBe("second/app");
  });

  test("an owner's HTTP listener beside its HTTPS one serves clients over http", async () => {
    const id = await serve(
      gateway(),
      listenerSet("team", [{ ...web("a.example.com"), name: "http" }, web("a.example.com", HTTPS)]),
      httpRoute("team", {
        name: "to-https",
        section: "http",
        rules: [
          { filters: [{ type: "RequestRedirect", requestRedirect: { scheme: "https", statusCode: 301 } }] },
          { path: "/.well-known/acme-challenge/x", backend: "solver" },
        ],
      }),
      httpRoute("team", { name: "app", section: "web", rules: [{ backend: "app" }] }),
      cert("team"),
      await bed.backend("team", "app"),
      await bed.backend("team", "solver"),
    );
    expect(bed.conditions("ListenerSet/team/team", "http")).toContain("Programmed=True Programmed");
    const redirected = await bed.edge.fetch(id, { host: "a.example.com", path: "/x?y=1", scheme: "http" });
    expect([redirected.status, redirected.headers["location"]]).toEqual([301, "https://a.example.com/x?y=1"]);
    expect(await backendOf(id, "a.example.com", { scheme: "https" })).toBe("team/app");
    const challenge = { path: "/.well-known/acme-challenge/x", scheme: "http" } as const;
    expect(await backendOf(id, "a.example.com", challenge)).toBe("team/solver");
  });

  test("a redirect to https of an HTTP listener alone does not redirect to itself", async () => {
    const id = await serve(
      gateway(),
      listenerSet("team", [web("a.example.com")]),
      httpRoute("team", {
        rules: [{ filters: [{ type: "RequestRedirect", requestRedirect: { scheme: "https" } }] }],
      }),
    );
    expect((await bed.edge.fetch(id, { host: "a.example.com", scheme: "http" })).status).toBe(302);
    expect((await bed.edge.fetch(id, { host: "a.example.com", scheme: "https" })).status).toBe(404);
  });

  test.each(["http", "https"] as const)(
    "a redirect without a scheme keeps %s and shows no inner port",
    async (scheme) => {
      const redirect = { type: "RequestRedirect", requestRedirect: { hostname: "b.example.com" } };
      const id = await serve(
        gateway(),
        listenerSet("team", [web("a.example.com")]),
        httpRoute("team", { rules: [{ filters: [redirect] }] }),
      );
      const { headers } = await bed.edge.fetch(id, { host: "a.example.com", path: "/p", scheme });
      expect(headers["location"]).toBe(`${scheme}://b.example.com/p`);
    },
  );

  test("client certificates cannot be asked for: the listener is refused, not served unprotected", async () => {
    const validation = { caCertificateRefs: [{ group: "", kind: "ConfigMap", name: "ca" }] };
    const id = await serve(
      gateway([{ name: "open", hostname: "o.example.com" }, web("a.example.com", HTTPS)], {
        tls: { frontend: { default: { validation } } },
      }),
      `apiVersion: v1\nkind: ConfigMap\nmetadata: { namespace: infra, name: ca }\ndata:\n  ca.crt: |\n${CERTIFICATE.cert.replace(/^/gm, "    ")}`,
      cert("infra"),
      gatewayRoute("app", "app"),
      await bed.backend("infra", "app"),
    );
    await bed.until(() =>
      bed.conditions("Gateway/infra/edge", "web").includes("Programmed=False UnsupportedValue"),
    );
    expect((await bed.edge.fetch(id, { host: "a.example.com" })).status).toBe(404);
    expect((await bed.edge.fetch(id, { host: "o.example.com" })).status).toBe(200);
  });
});

describe("what backends are told", () => {
  test("a backend gets the client's address from the edge, and nothing that the client claims", async () => {
    const id = await serve(
      gateway(),
      listenerSet("team", [web("a.example.com")]),
      httpRoute("team", { rules: [{ backend: "app" }] }),
      await bed.backend("team", "app"),
    );
    const claims = { "x-forwarded-for": "10.0.0.1", "x-forwarded-port": "1", "x-real-ip": "10.0.0.2" };
    const { body } = await bed.edge.fetch(id, {
      host: "a.example.com",
      from: "198.51.100.9",
      scheme: "http",
      headers: claims,
    });
    const { headers } = JSON.parse(body) as { headers: Record<string, string> };
    expect(headers).toMatchObject({
      "x-forwarded-for": "198.51.100.9",
      "x-forwarded-proto": "http",
      "x-forwarded-port": "80",
      "x-forwarded-host": "a.example.com",
      host: "a.example.com",
    });
    expect(headers["x-real-ip"]).toBeUndefined();
    expect(bed.records.at(-1)?.client).toBe("198.51.100.9");
  });
});

test.each([undefined, "no address", "198.51.100.1, 10.0.0.1"])(
  "a peer whose CF-Connecting-IP is not one address (%s) is the client itself",
  async (claim) => {
    await serve(
      gateway(),
      listenerSet("team", [web("a.example.com")]),
      httpRoute("team", { rules: [{ backend: "app" }] }),
      await bed.backend("team", "app"),
    );
    const headers = {
      "x-forwarded-for": "10.0.0.9",
      ...(claim === undefined ? {} : { "cf-connecting-ip": claim }),
    };
    const { seen } = await ask(bed.port, { host: "a.example.com", headers });
    expect(seen.headers["x-forwarded-for"]).toBe("127.0.0.1");
  },
);

describe("more than plain requests", () => {
  test("a later GRPCRoute gets HTTP/2 to the origin and trailers to the client without a connector restart", async () => {
    const backend = createServer().on("stream", (stream) => {
      stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
      stream.end(Buffer.from([0, 0, 0, 0, 0]));
    });
    await new Promise<void>((resolve) => backend.listen(0, "127.0.0.1", resolve));
    const manifests = [gateway(), listenerSet("team", [web("a.example.com")])];
    const id = await serve(...manifests);
    const connectors = new Set([...bed.tunnel().connections.values()].map(({ connector }) => connector));
    expect(bed.tunnel().config?.ingress?.at(-1)?.service).toBe(`http://127.0.0.1:${bed.port}`);
    bed.apply(
      ...manifests,
      grpcRoute("team", "greeter"),
      serviceAt({ namespace: "team", name: "greeter", port: (backend.address() as AddressInfo).port }),
    );
    await bed.edge.until(() => bed.edge.applied.filter((version) => version === 2).length >= 2);
    expect(bed.tunnel().config?.ingress?.at(-1)).toEqual({
      service: `https://127.0.0.1:${bed.port + 1}`,
      originRequest: { http2Origin: true, noTLSVerify: true },
    });
    await bed.gatewaySays("Programmed=True Programmed");
    const answer = await bed.edge.fetch(id, {
      host: "a.example.com",
      path: "/hello.Greeter/Hello",
      method: "POST",
      headers: { "content-type": "application/grpc", te: "trailers" },
      body: Buffer.from([0, 0, 0, 0, 0]),
    });
    expect([answer.status, answer.trailers["grpc-status"]]).toEqual([200, "0"]);
    expect(new Set([...bed.tunnel().connections.values()].map(({ connector }) => connector))).toEqual(
      connectors,
    );
    backend.close();
  });

  test("a WebSocket works through the tunnel", async () => {
    const { createServer: createHttp } = await import("node:http");
    const backend = createHttp().on("upgrade", (_request, socket) => {
      socket.write("HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n");
      socket.pipe(socket);
    });
    await new Promise<void>((resolve) => backend.listen(0, "127.0.0.1", resolve));
    const id = await serve(
      gateway(),
      listenerSet("team", [web("a.example.com")]),
      httpRoute("team", { rules: [{ backend: "echo" }] }),
      serviceAt({ namespace: "team", name: "echo", port: (backend.address() as AddressInfo).port }),
    );
    bed.edge.names.set("a.example.com", id);
    const socket = connect(Number(new URL(bed.edge.frontUrl).port), "127.0.0.1");
    socket.write(
      "GET / HTTP/1.1\r\nhost: a.example.com\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
    );
    let received = "";
    for await (const chunk of socket) {
      received += String(chunk);
      if (received.endsWith("\r\n\r\n")) socket.write("ping");
      if (received.endsWith("ping")) break;
    }
    expect(received).toMatch(/^HTTP\/1\.1 101/);
    socket.destroy();
    backend.closeAllConnections();
    backend.close();
  });
});

async function backendOf(
  id: string,
  host: string,
  more: { path?: string; scheme?: "http" | "https" } = {},
): Promise<string> {
  const { body, status } = await bed.edge.fetch(id, { host, ...more });
  return status === 200 ? (JSON.parse(body) as { backend: string }).backend : `status ${status}`;
}

function gatewayRoute(name: string, backend: string): string {
  return `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { namespace: infra, name: ${name} }
spec:
  parentRefs: [{ name: edge }]
  rules: [{ backendRefs: [{ name: ${backend}, port: 80 }] }]`;
}
