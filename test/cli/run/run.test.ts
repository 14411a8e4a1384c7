/** `mergeway run` as a process, with real sockets. */
import { once } from "node:events";
import { existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import { createServer as createNetServer, type Server } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { envoyBinary } from "../../dataplanes/support/envoy-binary.ts";
import { folder, freePorts, type Running, start, until } from "../mergeway.ts";

function gateway(port: number): string {
  return `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shared, namespace: infra}
spec:
  gatewayClassName: mergeway
  allowedListeners: {namespaces: {from: All}}
  listeners: [{name: own, port: ${port}, protocol: HTTP, hostname: infra.example.com}]
`;
}

interface Team {
  readonly name: string;
  readonly port: number;
  readonly backend: number;
  readonly hostname?: string;
}

function team({ name, port, backend, hostname = `${name}.example.com` }: Team): string {
  return `
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: web, namespace: ${name}}
spec:
  parentRef: {name: shared, namespace: infra}
  listeners: [{name: http, port: ${port}, protocol: HTTP, hostname: ${hostname}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: ${name}}
spec: {parentRefs: [{kind: ListenerSet, name: web}], rules: [{backendRefs: [{name: web, port: 80}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: ${name}}
spec: {ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: ${name}, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
endpoints: [{addresses: [127.0.0.1]}]
ports: [{port: ${backend}}]
`;
}

async function backend(answer: RequestListener): Promise<number> {
  const server = createServer(answer);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as { port: number }).port;
}

/** Named backends say who they are. */
function saying(text: string): RequestListener {
  return (_request, response) => void response.end(text);
}

interface Got {
  readonly status: number;
  readonly body: string;
}

async function get(port: number, host: string, path = "/"): Promise<Got> {
  const { request } = await import("node:http");
  const { promise, resolve, reject } = Promise.withResolvers<Got>();
  const sent = request(
    { port, host: "127.0.0.1", path, headers: { host }, agent: false },
    async (response) => {
      let body = "";
      for await (const chunk of response) body += String(chunk);
      resolve({ status: response.statusCode ?? 0, body });
    },
  );
  sent.on("error", reject);
  sent.end();
  return await promise;
}

function serve(path: string, ...flags: string[]): Running {
  return start(["run", path, "--address", "127.0.0.1", "--admin-address", "off", ...flags]);
}

const PATIENT = { timeout: 20_000, interval: 50 };

describe("mergeway run", () => {
  test("serves a folder, prints the table, and stops when it is told to", async () => {
    const [port = 0] = await freePorts(1);
    const path = folder({
      "gateway.yaml": gateway(port),
      "a.yaml": team({ name: "team-a", port, backend: await backend(saying("a")) }),
      "b.yaml": team({ name: "team-b", port, backend: 1, hostname: "team-a.example.com" }),
    });
    const running = serve(path);
    await running.prints(/2 of 3 listeners served on 127\.0\.0\.1/);
    expect(running.stdout()).toMatch(
      /OWNER +LISTENER +PORT +PROTOCOL +HOSTNAME +CERTIFICATE +ROUTES +STATE +HELD BY/,
    );
    expect(running.stdout()).toMatch(
      /ListenerSet team-a\/web +http +\d+ +HTTP +team-a\.example\.com +- +1 +serving/,
    );
    expect(running.stdout()).toMatch(
      /ListenerSet team-b\/web .*conflicted \(HostnameConflict\) +ListenerSet team-a\/web \(http\)/,
    );
    expect(await get(port, "team-a.example.com")).toEqual({ status: 200, body: "a" });
    running.kill("SIGTERM");
    expect(await running.exited).toBe(0);
    expect(running.stderr()).toMatch(/stopping.*\n.*stopped\n$/);
  });

  test("a backend that is the admin server itself is refused, by every way to write its address", async () => {
    const [port = 0, admin = 0] = await freePorts(2);
    const path = folder({
      "gateway.yaml": gateway(port),
      "a.yaml": team({ name: "team-a", port, backend: admin }),
      "b.yaml": team({ name: "team-b", port, backend: admin }).replace("127.0.0.1", "0.0.0.0"),
      "c.yaml": team({ name: "team-c", port, backend: await backend(saying("c")) }),
    });
    const running = start(["run", path, "--address", "127.0.0.1", "--admin-address", `127.0.0.1:${admin}`]);
    await running.prints(/4 of 4 listeners served on 127\.0\.0\.1/);
    expect((await get(port, "team-a.example.com", "/api/v1/state")).status).toBe(500);
    expect((await get(port, "team-b.example.com", "/api/v1/state")).status).toBe(500);
    expect(await get(port, "team-c.example.com")).toEqual({ status: 200, body: "c" });
    running.kill("SIGTERM");
    await running.exited;
  });

  test("serves with Envoy, and follows changes", async () => {
    const [port = 0] = await freePorts(1);
    const path = folder({
      "gateway.yaml": gateway(port),
      "a.yaml": team({ name: "team-a", port, backend: await backend(saying("a")) }),
    });
    const running = serve(path, "--data-plane", "envoy", "--envoy", envoyBinary());
    await running.prints(/2 of 2 listeners served on 127\.0\.0\.1, by /);
    await expect.poll(async () => (await get(port, "team-a.example.com")).body, PATIENT).toBe("a");
    writeFileSync(join(path, "b.yaml"), team({ name: "team-b", port, backend: await backend(saying("b")) }));
    await expect.poll(async () => (await get(port, "team-b.example.com")).body, PATIENT).toBe("b");
    running.kill("SIGTERM");
    expect(await running.exited).toBe(0);
  });

  test("says what to do when Envoy is not there", async () => {
    const running = serve(
      folder({ "gateway.yaml": gateway(1) }),
      "--data-plane",
      "envoy",
      "--envoy",
      "no-envoy-here",
    );
    expect(await running.exited).toBe(2);
    expect(running.stderr()).toMatch(/Envoy is not there: no-envoy-here[\s\S]*--envoy FILE/);
  });

  test("follows changes, hands a hostname over, and tells each", async () => {
    const [port = 0] = await freePorts(1);
    const path = folder({
      "gateway.yaml": gateway(port),
      "a.yaml": team({ name: "team-a", port, backend: await backend(saying("a")) }),
      "b.yaml": team({
        name: "team-b",
        port,
        backend: await backend(saying("b")),
        hostname: "team-a.example.com",
      }),
    });
    const running = serve(path);
    await running.prints(/listeners served/);
    rmSync(join(path, "a.yaml"));
    await running.prints(/- HTTP :\d+ team-a\.example\.com {2}ListenerSet team-a\/web, listener http/);
    await running.prints(
      /\+ HTTP :\d+ team-a\.example\.com {2}ListenerSet team-b\/web, listener http: serving/,
    );
    expect(await get(port, "team-a.example.com")).toEqual({ status: 200, body: "b" });
    writeFileSync(join(path, "c.yaml"), team({ name: "team-c", port, backend: await backend(saying("c")) }));
    await running.prints(
      /\+ HTTP :\d+ team-c\.example\.com {2}ListenerSet team-c\/web, listener http: serving/,
    );
    expect(await get(port, "team-c.example.com")).toEqual({ status: 200, body: "c" });
  });

  test("a broken file stops nothing that is served, and says so once", async () => {
    const [port = 0] = await freePorts(1);
    const good = team({ name: "team-a", port, backend: await backend(saying("a")) });
    const path = folder({ "gateway.yaml": gateway(port), "a.yaml": good });
    const running = serve(path);
    await running.prints(/listeners served/);
    writeFileSync(join(path, "a.yaml"), good.replace("parentRef:", "parentRef: ["));
    await running.prints(/error .*a\.yaml:\d+:\d+: /);
    expect(await get(port, "team-a.example.com")).toEqual({ status: 200, body: "a" });
    writeFileSync(join(path, "b.yaml"), team({ name: "team-b", port, backend: await backend(saying("b")) }));
    await running.prints(/team-b\/web, listener http: serving/);
    expect(await get(port, "team-b.example.com")).toEqual({ status: 200, body: "b" });
    const complaints = running.stderr().match(/a\.yaml:\d+:\d+: /g) ?? [];
    expect(new Set(complaints).size).toBe(complaints.length);
    writeFileSync(join(path, "a.yaml"), good);
    await running.prints(/all files can be read again/);
  });

  test("a port that is taken is that listener's trouble and nobody else's", async () => {
    const [port = 0] = await freePorts(1);
    const taken: Server = createNetServer();
    taken.listen(0, "127.0.0.1");
    await once(taken, "listening");
    onTestFinished(() => void taken.close());
    const { port: takenPort } = taken.address() as { port: number };
    const path = folder({
      "gateway.yaml": gateway(port),
      "a.yaml": team({ name: "team-a", port, backend: await backend(saying("a")) }),
      "b.yaml": team({ name: "team-b", port: takenPort, backend: 1 }),
    });
    const running = serve(path);
    await running.prints(/2 of 3 listeners served/);
    expect(running.stdout()).toMatch(/ListenerSet team-b\/web .*failed \(PortUnavailable\)/);
    expect(await get(port, "team-a.example.com")).toEqual({ status: 200, body: "a" });
  });

  test("--port-offset opens every port higher", async () => {
    const [port = 0] = await freePorts(1);
    const path = folder({
      "gateway.yaml": gateway(port - 1000),
      "a.yaml": team({ name: "team-a", port: port - 1000, backend: await backend(saying("a")) }),
    });
    const running = serve(path, "--port-offset", "1000");
    await running.prints(/2 of 2 listeners served on 127\.0\.0\.1, each port 1000 higher/);
    expect(await get(port, "team-a.example.com")).toEqual({ status: 200, body: "a" });
  });

  test("--status-dir keeps a status per object, replaced only when it changes", async () => {
    const [port = 0] = await freePorts(1);
    const path = folder({
      "gateway.yaml": gateway(port),
      "a.yaml": team({ name: "team-a", port, backend: 1 }),
    });
    const statuses = join(folder({}), "status");
    const running = serve(path, "--status-dir", statuses);
    await running.prints(/listeners served/);
    const file = join(statuses, "listenerset/team-a/web.yaml");
    const conditionsOf = (): { type: string; status: string }[] =>
      (parse(readFileSync(file, "utf8")) as { status: { conditions: { type: string; status: string }[] } })
        .status.conditions;
    await until(
      () =>
        (existsSync(file) && conditionsOf().find(({ type }) => type === "Programmed")?.status === "True") ||
        undefined,
      "Programmed=True",
    );
    const before = statSync(file).ino;
    writeFileSync(join(path, "b.yaml"), team({ name: "team-b", port, backend: 1 }));
    await until(
      () => existsSync(join(statuses, "listenerset/team-b/web.yaml")) || undefined,
      "the status of team-b",
    );
    expect(statSync(file).ino).toBe(before);
    renameSync(join(path, "a.yaml"), join(path, "a.txt"));
    await until(() => !existsSync(file) || undefined, "the end of the status of team-a");
  });

  test("logs for machines, and a line per request", async () => {
    const [port = 0] = await freePorts(1);
    const path = folder({
      "gateway.yaml": gateway(port),
      "a.yaml": team({ name: "team-a", port, backend: await backend(saying("a")) }),
    });
    const log = join(folder({}), "access.log");
    const running = serve(path, "--log-format", "json", "--access-log", log);
    await running.prints(/"event":"started"/);
    expect(running.stdout()).toBe("");
    await get(port, "team-a.example.com", "/x?y=1");
    const text = await until(
      () => (existsSync(log) && readFileSync(log, "utf8")) || undefined,
      "the access log",
    );
    expect(JSON.parse(text)).toMatchObject({
      method: "GET",
      authority: "team-a.example.com",
      hostname: "team-a.example.com",
      status: 200,
      route: { kind: "HTTPRoute", namespace: "team-a", name: "web", rule: 0 },
    });
    for (const line of running.stderr().trimEnd().split("\n")) {
      expect(JSON.parse(line)).toMatchObject({
        level: expect.stringMatching(/info|warn|error/),
        time: expect.any(String),
      });
    }
  });

  test("lets a request in flight finish before it stops", async () => {
    const [port = 0] = await freePorts(1);
    const asked = Promise.withResolvers<void>();
    const mayAnswer = Promise.withResolvers<void>();
    const slow = await backend((_request, response) => {
      asked.resolve();
      void mayAnswer.promise.then(() => response.end("late"));
    });
    const path = folder({
      "gateway.yaml": gateway(port),
      "a.yaml": team({ name: "team-a", port, backend: slow }),
    });
    const running = serve(path, "--grace", "20");
    await running.prints(/listeners served/);
    const answer = get(port, "team-a.example.com");
    await asked.promise;
    running.kill("SIGTERM");
    await running.prints(/stopping/);
    mayAnswer.resolve();
    expect(await answer).toEqual({ status: 200, body: "late" });
    expect(await running.exited).toBe(0);
  });

  test("a second signal ends it at once", async () => {
    const [port = 0] = await freePorts(1);
    const asked = Promise.withResolvers<void>();
    const never = await backend(() => asked.resolve());
    const path = folder({
      "gateway.yaml": gateway(port),
      "a.yaml": team({ name: "team-a", port, backend: never }),
    });
    const running = serve(path, "--grace", "3600");
    await running.prints(/listeners served/);
    const answer = get(port, "team-a.example.com").catch((error: Error) => error);
    await asked.promise;
    running.kill("SIGINT");
    await running.prints(/stopping/);
    running.kill("SIGINT");
    expect(await running.exited).toBe(130);
    expect(await answer).toBeInstanceOf(Error);
  });

  test("an entry without a port keeps the port it was given, whoever comes before it later", async () => {
    const [port = 0] = await freePorts(1);
    const portless = (name: string): string => `
apiVersion: gateway.networking.x-k8s.io/v1alpha1
kind: XListenerSet
metadata: {name: web, namespace: ${name}}
spec:
  parentRef: {name: shared, namespace: infra}
  listeners: [{name: http, protocol: HTTP, hostname: ${name}.example.com}]
`;
    const path = folder({ "gateway.yaml": gateway(port), "m.yaml": portless("team-m") });
    const statuses = join(folder({}), "status");
    const portOf = async (name: string): Promise<number> =>
      await until(() => {
        const file = join(statuses, `xlistenerset/${name}/web.yaml`);
        if (!existsSync(file)) return undefined;
        return (parse(readFileSync(file, "utf8")) as { status: { listeners: { port: number }[] } }).status
          .listeners[0]?.port;
      }, `the port of ${name}`);
    const first = serve(path, "--status-dir", statuses);
    await first.prints(/listeners served/);
    const given = await portOf("team-m");
    first.kill("SIGTERM");
    await first.exited;
    // The status is the memory: a port that the name alone would not give must survive a restart.
    const file = join(statuses, "xlistenerset/team-m/web.yaml");
    const [other = 0] = (await freePorts(1)).filter((candidate) => candidate !== given);
    const remembered = Math.max(other, 49_152);
    writeFileSync(file, readFileSync(file, "utf8").replace(`port: ${given}`, `port: ${remembered}`));
    const second = serve(path, "--status-dir", statuses);
    await second.prints(/listeners served/);
    expect(second.stdout()).toContain(String(remembered));
    writeFileSync(join(path, "a.yaml"), portless("team-a"));
    await second.prints(/team-a\/web, listener http/);
    expect(await portOf("team-m")).toBe(remembered);
  });

  test.each([
    [["--admin-address", "nonsense"], /--admin-address cannot be "nonsense"/],
    [["--workers", "many"], /--workers cannot be "many"/],
  ])("%j is refused", async (flags, message) => {
    const running = start(["run", folder({ "a.yaml": "{}" }), ...flags]);
    expect(await running.exited).toBe(2);
    expect(running.stderr()).toMatch(message);
  });
});
