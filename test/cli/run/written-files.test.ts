/** The files that `mergeway run` writes: statuses and the access log. */
import { existsSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { folder, freePorts, until } from "../mergeway.ts";
import { backend, gateway, get, saying, serve, team } from "./served-folder.ts";

describe("mergeway run", () => {
  test("--status-dir keeps one file for each object, replaced only when its status changes", async () => {
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

  test("--status-dir keeps the statuses of policies as well", async () => {
    const [port = 0] = await freePorts(1);
    const path = folder({
      "gateway.yaml": gateway(port),
      "policies.yaml": `
apiVersion: mergeway.dev/v1alpha1
kind: TrafficPolicy
metadata: {name: base, namespace: infra}
spec: {targetRefs: [{kind: Gateway, name: shared}], overrides: {rateLimits: [{requests: 5}]}}
---
apiVersion: mergeway.dev/v1alpha1
kind: ClientPolicy
metadata: {name: base, namespace: infra}
spec: {targetRefs: [{kind: Gateway, name: other}], defaults: {clientAddress: {proxyProtocol: Required}}}
`,
    });
    const statuses = join(folder({}), "status");
    const running = serve(path, "--status-dir", statuses);
    await running.prints(/listeners? served/);
    const reasonOf = async (kind: string): Promise<string> =>
      await until(() => {
        const file = join(statuses, `${kind}/infra/base.yaml`);
        return existsSync(file) ? (/reason: (\w+)/.exec(readFileSync(file, "utf8"))?.[1] ?? "") : undefined;
      }, `the status of the ${kind}`);
    expect(await reasonOf("trafficpolicy")).toBe("Accepted");
    expect(await reasonOf("clientpolicy")).toBe("TargetNotFound");
  });

  test("writes JSON logs and an access log with one line for each request", async () => {
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
      path: "/x",
      listenerKind: "ListenerSet",
      listenerNamespace: "team-a",
      routeKind: "HTTPRoute",
      routeNamespace: "team-a",
      routeName: "web",
      rule: 0,
    });
    for (const line of running.stderr().trimEnd().split("\n")) {
      expect(JSON.parse(line)).toMatchObject({
        level: expect.stringMatching(/info|warn|error/),
        time: expect.any(String),
      });
    }
  });

  test("an entry without a port keeps its assigned port after a restart and a new competitor", async () => {
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
    // Assigned ports are read from the statuses: a port other than the default survives a restart.
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
});
