/** The admin server of a running process. */
import { once } from "node:events";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { METRICS } from "../../src/admin/metrics/metric-table.ts";
import { TRAFFIC_METRICS } from "../../src/dataplanes/traffic/metric-table.ts";
import { folder, freePorts, ROOT, type Running, start, until } from "../cli/mergeway.ts";

const EXAMPLE = join(ROOT, "examples/two-teams");
const FILES = [
  "gateway.yaml",
  "platform-certificate.yaml",
  "team-coffee.yaml",
  "team-coffee-certificate.yaml",
  "team-zest.yaml",
  "team-zest-certificate.yaml",
];

let path: string;
let running: Running;
let base: string;
let httpPort: number;
let httpsPort: number;

async function startGateway(after: (clean: () => void | Promise<void>) => void): Promise<void> {
  const [http = 0, https = 0] = await freePorts(2);
  httpPort = http;
  httpsPort = https;
  const text = (name: string): string =>
    readFileSync(join(EXAMPLE, name), "utf8")
      .replaceAll("8080", String(http))
      .replaceAll("8443", String(https));
  path = folder(Object.fromEntries(FILES.map((name) => [name, text(name)])), after);
  const flags = ["--address", "127.0.0.1", "--admin-address", "127.0.0.1:0", "--workers", "0"];
  running = start(["run", path, ...flags], {}, after);
  base = (await running.prints(/admin server on (http:\S+)/))[1] ?? "";
  await running.prints(/listeners served/);
}

/** Rejects when the connection is closed before the handshake ends. */
async function connectTls(servername: string): Promise<TLSSocket> {
  const socket = connect({ host: "127.0.0.1", port: httpsPort, servername, rejectUnauthorized: false });
  onTestFinished(() => void socket.destroy());
  await once(socket, "secureConnect");
  return socket;
}

async function json(
  at: string,
): Promise<{ total: number; items: Record<string, unknown>[] } & Record<string, unknown>> {
  const response = await fetch(`${base}${at}`);
  expect(response.status, at).toBe(200);
  return (await response.json()) as never;
}

describe("the admin server", () => {
  const cleanups: (() => void | Promise<void>)[] = [];
  beforeAll(() => startGateway((clean) => cleanups.unshift(clean)));
  afterAll(async () => {
    for (const clean of cleanups) await clean();
  });

  test("answers health and readiness probes, and lists its endpoints", async () => {
    expect(await (await fetch(`${base}/healthz`)).text()).toBe("ok\n");
    expect(await (await fetch(`${base}/readyz`)).text()).toBe("ready\n");
    const { endpoints } = await json("/");
    expect((endpoints as { path: string }[]).map(({ path: at }) => at)).toContain("/api/v1/hostnames");
    expect((await fetch(`${base}/nothing`)).status).toBe(404);
  });

  test("ends the response to HEAD for every endpoint, the events included", async () => {
    const { endpoints } = await json("/");
    const paths = (endpoints as { path: string }[]).map(({ path: at }) => at);
    expect(paths).toContain("/api/v1/events");
    for (const at of paths) {
      const head = await fetch(`${base}${at}`, { method: "HEAD" });
      expect(await head.text(), at).toBe("");
      const followed = new AbortController();
      const got = await fetch(`${base}${at}`, { signal: followed.signal });
      followed.abort();
      expect(head.status, at).toBe(got.status);
      expect(head.headers.get("content-type"), at).toBe(got.headers.get("content-type"));
    }
  });

  test("shows the merged state: gateways, listeners, routes, hostnames", async () => {
    const gateways = await json("/api/v1/gateways");
    expect(gateways.items[0]).toMatchObject({
      namespace: "platform",
      name: "shared",
      attachedListenerSets: 1,
    });
    const listeners = await json("/api/v1/listeners?namespace=team-zest");
    expect(listeners).toMatchObject({
      total: 2,
      items: [
        {
          section: "http",
          state: "conflicted",
          reason: "HostnameConflict",
          heldBy: { namespace: "team-coffee" },
        },
        { section: "https", state: "conflicted" },
      ],
    });
    const routes = await json("/api/v1/routes?namespace=team-coffee");
    expect(routes.items).toMatchObject([
      {
        kind: "HTTPRoute",
        namespace: "team-coffee",
        name: "coffee",
        attached: [{ hostnames: ["coffee.example.com"] }, {}],
        backends: [{ endpoints: 1 }],
      },
    ]);
    const hostnames = await json("/api/v1/hostnames?gateway=platform/shared");
    expect(
      hostnames.items.find(({ hostname, port }) => hostname === "coffee.example.com" && port === httpPort),
    ).toMatchObject({
      holder: { listener: { namespace: "team-coffee", section: "http" } },
      claims: [{ listener: { namespace: "team-zest" }, state: "conflicted" }],
    });
  });

  test("pages through long lists", async () => {
    const all = await json("/api/v1/listeners");
    const part = await json("/api/v1/listeners?limit=2&offset=1");
    expect(part.total).toBe(all.total);
    expect(part.items).toEqual(all.items.slice(1, 3));
  });

  test("explains a request, and answers 400 to one that it cannot read", async () => {
    const url = encodeURIComponent(`http://coffee.example.com:${httpPort}/`);
    expect(await json(`/api/v1/explain?url=${url}`)).toMatchObject({
      outcome: "forward",
      route: { namespace: "team-coffee", name: "coffee" },
    });
    expect((await fetch(`${base}/api/v1/explain`)).status).toBe(400);
    const bad = await fetch(`${base}/api/v1/explain?url=nonsense`);
    expect(bad.status).toBe(400);
    expect(await bad.json()).toMatchObject({ error: expect.stringContaining("is not a URL") });
    const nobody = await fetch(`${base}/api/v1/explain?url=${url}&client=somebody`);
    expect(await nobody.json()).toMatchObject({ error: expect.stringContaining("is not an address") });
  });

  test("refuses writes, and a Host that is not an address or localhost", async () => {
    expect((await fetch(`${base}/api/v1/gateways`, { method: "POST" })).status).toBe(405);
    const asking = async (host: string): Promise<number> => {
      const { promise, resolve, reject } = Promise.withResolvers<number>();
      const sent = httpRequest(`${base}/api/v1/gateways`, { headers: { host }, agent: false }, (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      });
      sent.on("error", reject);
      sent.end();
      return await promise;
    };
    expect(await asking("rebound.example.com")).toBe(403);
    expect(await asking("localhost.example.com:9909")).toBe(403);
    expect(await asking("localhost:9909")).toBe(200);
    expect(await asking("[::1]:9909")).toBe(200);
  });

  test("shows no private key", async () => {
    const key =
      /tls\.key: (\S+)/.exec(readFileSync(join(path, "team-coffee-certificate.yaml"), "utf8"))?.[1] ?? "";
    expect(key.length).toBeGreaterThan(100);
    const inner = Buffer.from(key, "base64").toString().split("\n")[1] ?? "";
    expect(inner.length).toBeGreaterThan(40);
    for (const at of [
      "/",
      "/metrics",
      "/metrics/state",
      "/api/v1/gateways",
      "/api/v1/listeners",
      "/api/v1/routes",
      "/api/v1/hostnames",
      "/api/v1/outline",
      "/api/v1/traffic",
    ]) {
      const text = await (await fetch(`${base}${at}`)).text();
      expect(text).not.toContain(key);
      expect(text).not.toContain(inner);
    }
  });

  test("exposes exactly the metrics of the table and those of the process", async () => {
    const text = await (await fetch(`${base}/metrics`)).text();
    const names = Array.from(text.matchAll(/^# TYPE (\S+)/gm), ([, name]) => name as string);
    const own = names.filter((name) => !/^(process|nodejs)_/.test(name));
    expect(own.sort()).toEqual([...Object.keys(METRICS), ...Object.keys(TRAFFIC_METRICS)].sort());
  });

  test("tells the state of objects at a path of its own", async () => {
    const answer = await fetch(`${base}/metrics/state`);
    expect(answer.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    const text = await answer.text();
    expect(text).toContain(
      'gatewayapi_gateway_status{namespace="platform",name="shared",type="Programmed"} 1\n',
    );
    expect(text).toContain(
      'gatewayapi_listenerset_parent_info{namespace="team-coffee",name="coffee",customresource_kind="ListenerSet",parent_group="gateway.networking.k8s.io",parent_kind="Gateway",parent_namespace="platform",parent_name="shared"} 1\n',
    );
  });
});

describe("the admin server during changes", () => {
  beforeEach(() => startGateway(onTestFinished));

  test("sends changes as events, and missed events to a client that reconnects", async () => {
    const { body } = await fetch(`${base}/api/v1/events`);
    if (body === null) throw new Error("no events");
    rmSync(join(path, "team-coffee.yaml"));
    let text = "";
    const decoder = new TextDecoder();
    const wanted = /id: (\d+)\nevent: change\ndata: (\{.*"namespace":"team-zest".*"now":"serving".*\})\n/;
    for await (const chunk of body) {
      text += decoder.decode(chunk as Uint8Array, { stream: true });
      if (wanted.test(text)) break;
    }
    const [, id = "0", data = ""] = wanted.exec(text) ?? [];
    expect(JSON.parse(data)).toMatchObject({
      type: "listener",
      before: "waiting",
      now: "serving",
      hostname: "coffee.example.com",
    });
    const missed = await fetch(`${base}/api/v1/events`, {
      headers: { "last-event-id": String(Number(id) - 1) },
    });
    const reader = missed.body?.getReader();
    let again = "";
    while (!again.includes(data)) again += decoder.decode((await reader?.read())?.value, { stream: true });
    await reader?.cancel();
    expect(again).toContain(`id: ${id}\n`);
  });

  test("counts requests by listener and route, never by text of the client", async () => {
    const ask = async (host: string): Promise<void> => {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const sent = httpRequest(
        { host: "127.0.0.1", port: httpPort, headers: { host }, agent: false },
        (response) => {
          response.resume();
          response.on("end", resolve);
        },
      );
      sent.on("error", reject);
      sent.end();
      await promise;
    };
    for (let count = 0; count < 5; count++) await ask(`random-${count}.example.org`);
    await ask("coffee.example.com");
    const metrics = async (): Promise<string> => await (await fetch(`${base}/metrics`)).text();
    const text = await until(async () => {
      const now = await metrics();
      return /mergeway_requests_total\{kind="Gateway",.*code="5xx"\} 5\n/.test(now) ? now : undefined;
    }, "five requests");
    expect(text).toMatch(
      /mergeway_requests_total\{kind="ListenerSet",namespace="team-coffee",name="coffee",listener_name="http",route="HTTPRoute\/team-coffee\/coffee",code="5xx"\} 1\n/,
    );
    expect(text).not.toContain("random-");
    expect(text).toMatch(
      /mergeway_listener_state\{kind="ListenerSet",namespace="team-zest",name="zest",listener_name="http",state="conflicted"\} 1\n/,
    );
    rmSync(join(path, "team-coffee.yaml"));
    rmSync(join(path, "team-zest.yaml"));
    await until(
      async () => !/mergeway_requests_total\{.*namespace="team-coffee"/.test(await metrics()) || undefined,
      "the listener to be forgotten",
    );
  });

  test("counts refusals of tenant limits by tenant, never by text of the client", async () => {
    const infrastructure = "{ parametersRef: { group: mergeway.dev, kind: GatewayParameters, name: small } }";
    writeFileSync(
      join(path, "parameters.yaml"),
      `apiVersion: mergeway.dev/v1alpha1
kind: GatewayParameters
metadata: { name: small, namespace: platform }
spec: { tenantLimits: { connections: 1 } }
`,
    );
    const file = join(path, "gateway.yaml");
    const text = readFileSync(file, "utf8");
    writeFileSync(
      file,
      text.replace("  gatewayClassName: mergeway\n", `$&  infrastructure: ${infrastructure}\n`),
    );
    await connectTls("coffee.example.com");
    await until(async () => {
      // The new limit may not be in force yet: then this connection is served.
      await connectTls("coffee.example.com").then(
        (more) => more.destroy(),
        () => {},
      );
      const metrics = await (await fetch(`${base}/metrics`)).text();
      return metrics.includes(
        'mergeway_tenant_refusals_total{kind="ListenerSet",namespace="team-coffee",name="coffee",limit="connections"}',
      )
        ? true
        : undefined;
    }, "a refused connection");
    // The Gateway's own listener has no limit.
    await connectTls("platform.example.com");
    await connectTls("platform.example.com");
  });

  test("counts files that cannot be read", async () => {
    writeFileSync(join(path, "broken.yaml"), "a: [");
    await until(
      async () =>
        /^mergeway_source_errors [1-9]/m.test(await (await fetch(`${base}/metrics`)).text()) || undefined,
      "the error",
    );
  });

  test("is not ready during shutdown", async () => {
    const server = await fetch(`${base}/readyz`);
    expect(server.status).toBe(200);
    running.kill("SIGTERM");
    const last = await until(async () => {
      try {
        const { status } = await fetch(`${base}/readyz`);
        return status === 200 ? undefined : status;
      } catch {
        return 0;
      }
    }, "an end of being ready");
    expect([0, 503]).toContain(last);
  });
});
