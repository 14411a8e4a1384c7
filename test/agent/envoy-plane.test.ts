/** The agent of a pod beside a real Envoy, which this test starts and kills as a kubelet would. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { openPodAdmin } from "../../src/agent/admin.ts";
import { type EnvoyPodOptions, envoyPodPlane } from "../../src/agent/envoy-plane.ts";
import { PodMetrics } from "../../src/agent/metrics.ts";
import type { PodPlane } from "../../src/agent/pod-plane.ts";
import { Telemetry } from "../../src/dataplanes/telemetry/telemetry.ts";
import type { TelemetrySettings } from "../../src/dataplanes/telemetry/telemetry-settings.ts";
import { TrafficCounts } from "../../src/dataplanes/traffic/traffic-counts.ts";
import { envoyBinary } from "../dataplanes/support/envoy-binary.ts";
import { ask, Backends } from "../dataplanes/support/http-peers.ts";
import { lastingPort } from "../dataplanes/support/lasting-port.ts";
import { OtlpCollector } from "../dataplanes/support/otlp-collector.ts";
import {
  backend,
  forwardTo,
  gateway,
  host,
  listener,
  port,
  rule,
} from "../dataplanes/support/plan-builder.ts";

const binary = envoyBinary();
const WAIT = { timeout: 20_000, interval: 50 };

describe("the agent of an Envoy", () => {
  let directory: string;
  let plane: PodPlane;
  let at: number;
  let readinessPort: number;
  let backends: Backends;
  let held: Promise<void>;
  let reached: PromiseWithResolvers<void>;
  const children = new Set<ChildProcess>();

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), "mergeway-agent-"));
    backends = new Backends();
    held = Promise.resolve();
    reached = Promise.withResolvers();
    at = await lastingPort();
    readinessPort = await lastingPort();
    plane = makePlane();
  });

  afterEach(async () => {
    await plane.close();
    for (const child of children) await end(child);
    backends.release();
    rmSync(directory, { recursive: true, force: true });
  });

  function makePlane(more: Partial<EnvoyPodOptions> = {}): PodPlane {
    return envoyPodPlane({
      gateway,
      pod: "pod-1",
      directory,
      readinessPort,
      drainSeconds: 20,
      traffic: new TrafficCounts(),
      trafficDirectory: directory,
      log: () => {},
      ...more,
    });
  }

  function startEnvoy(): ChildProcess {
    const args = ["-c", join(directory, "bootstrap.json"), "--disable-hot-restart", "--concurrency", "1"];
    args.push("--file-flush-interval-msec", "1000");
    const child = spawn(binary, [...args, "--log-level", "error", "--drain-strategy", "immediate"], {
      stdio: "ignore",
    });
    children.add(child);
    return child;
  }

  async function end(child: ChildProcess): Promise<void> {
    children.delete(child);
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  }

  /** Answers at once, or when it is let go. */
  const answer = (_request: IncomingMessage, response: ServerResponse): void => {
    reached.resolve();
    void held.then(() => response.end("here"));
  };

  async function serveOne(): Promise<void> {
    const open = port(at, "http");
    const one = listener("one", open, "a.example");
    plane.dataPlane.apply({
      upserts: [
        open,
        one,
        host(one, "a.example", [rule({ action: forwardTo("to") })]),
        backend("to", [await backends.http(answer)]),
      ],
      removes: [],
    });
  }

  /** What the kubelet's probe of the Envoy container gets; 0 where nobody answers. */
  async function probe(): Promise<number> {
    return await ask(readinessPort, { host: "kubelet.test", path: "/readyz" }).then(
      ({ status }) => status,
      () => 0,
    );
  }

  test("gives Envoy nothing before there is a plan, and is ready when it serves", async () => {
    startEnvoy();
    await serveOne();
    // Envoy has asked by now if it could.
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect(plane.isReady).toBe(false);
    expect(await probe()).not.toBe(200);
    await expect(ask(at, { host: "a.example" })).rejects.toThrow();
    plane.begin();
    await expect.poll(() => plane.isReady, WAIT).toBe(true);
    expect((await ask(at, { host: "a.example" })).status).toBe(200);
  });

  test("serves again with an Envoy that was killed, and with an agent that was", async () => {
    const first = startEnvoy();
    await serveOne();
    plane.begin();
    await expect.poll(() => plane.isReady, WAIT).toBe(true);
    await end(first);
    await expect.poll(() => plane.isReady, WAIT).toBe(false);
    startEnvoy();
    await expect.poll(() => plane.isReady, WAIT).toBe(true);
    expect((await ask(at, { host: "a.example" })).status).toBe(200);
    await plane.close();
    expect((await ask(at, { host: "a.example" })).status).toBe(200);
    plane = makePlane();
    await serveOne();
    plane.begin();
    await expect.poll(() => plane.isReady, WAIT).toBe(true);
    expect((await ask(at, { host: "a.example" })).status).toBe(200);
  });

  test("Envoy's own readiness outlives the agent, and begins anew with another Envoy", async () => {
    const first = startEnvoy();
    await serveOne();
    plane.begin();
    await expect.poll(probe, WAIT).toBe(200);
    await plane.close();
    expect(await probe()).toBe(200);
    expect((await ask(at, { host: "a.example" })).status).toBe(200);
    await end(first);
    startEnvoy();
    // Without an agent the next Envoy has nothing to serve.
    await expect.poll(probe, WAIT).not.toBe(200);
    plane = makePlane();
    await serveOne();
    plane.begin();
    await expect.poll(probe, WAIT).toBe(200);
  });

  test("a stream that breaks and comes again does not make Envoy unready", async () => {
    startEnvoy();
    await serveOne();
    plane.begin();
    await expect.poll(probe, WAIT).toBe(200);
    await plane.close();
    plane = makePlane();
    await serveOne();
    const answers = new Set<number>();
    // The new agent holds its plan back for a while, as one that is still loading does.
    for (let count = 0; count < 10; count++) {
      answers.add(await probe());
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    plane.begin();
    await expect.poll(() => plane.isReady, WAIT).toBe(true);
    answers.add(await probe());
    expect([...answers]).toEqual([200]);
  });

  /** An agent that tells of requests, and what has come of it. */
  async function telling(settings: TelemetrySettings): Promise<{
    readonly counts: TrafficCounts;
    readonly lines: () => readonly Record<string, unknown>[];
  }> {
    await plane.close();
    const counts = new TrafficCounts();
    const linesTo = join(directory, "lines");
    const telemetry = new Telemetry({
      settings,
      resource: { service: gateway, instance: "pod-1", version: "1" },
      counts: counts.telemetry,
      linesTo,
      onProblem: () => {},
    });
    onTestFinished(() => telemetry.close());
    const onMissing = (requests: number): void => telemetry.missed(requests);
    plane = makePlane({ traffic: counts, ...telemetry.hooks, onMissing });
    startEnvoy();
    await serveOne();
    plane.begin();
    await expect.poll(() => plane.isReady, WAIT).toBe(true);
    const lines = (): readonly Record<string, unknown>[] =>
      (existsSync(linesTo) ? readFileSync(linesTo, "utf8") : "")
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line) as Record<string, unknown>);
    return { counts, lines };
  }

  test("tells of each request, once: a line, a log record and a span", async () => {
    const collector = new OtlpCollector({ protocol: "GRPC" });
    onTestFinished(() => collector.close());
    const otlp = { endpoint: await collector.open(), protocol: "GRPC" } as const;
    const { counts, lines } = await telling({ accessLog: { stdout: {}, otlp }, tracing: { otlp } });
    for (const path of ["/1", "/2"]) await ask(at, { host: "a.example", path: `${path}?token=secret` });
    await expect.poll(() => lines().length, WAIT).toBe(2);
    expect(lines()[0]).toMatchObject({ path: "/1", status: 200, routeName: "route", gateway });
    await expect.poll(() => collector.spans.length, WAIT).toBe(2);
    await expect.poll(() => collector.logs.length, WAIT).toBe(2);
    const [span] = collector.spans;
    expect(span).toMatchObject({ traceId: lines()[0]?.["traceId"], spanId: lines()[0]?.["spanId"] });
    expect(span?.resource["service.name"]).toBe(gateway);
    expect(JSON.stringify([collector.spans.map(({ attributes }) => attributes), lines()])).not.toContain(
      "secret",
    );
    await expect.poll(() => counts.byListener(), WAIT).toMatchObject([{ requests: 2 }]);
    const sent = (): readonly unknown[] =>
      [...counts.telemetry.entries()].filter(([, result]) => result === "sent");
    await expect
      .poll(sent, WAIT)
      .toEqual(["access_log", "otlp_log", "span"].map((signal) => [signal, "sent", 2]));
  });

  test("counts every request where only spans of some are wanted", async () => {
    const collector = new OtlpCollector();
    onTestFinished(() => collector.close());
    const overrides = [
      { kind: "HTTPRoute", namespace: "apps", name: "route", samplingPercentage: 0 },
    ] as const;
    const { counts } = await telling({ tracing: { otlp: { endpoint: await collector.open() }, overrides } });
    await ask(at, { host: "a.example" });
    // No route has this one.
    await ask(at, { host: "other.example" });
    await expect.poll(() => collector.spans.length, WAIT).toBe(1);
    expect(collector.spans[0]?.attributes).toMatchObject({ "mergeway.reason": "NoListener" });
    await expect.poll(() => counts.byListener(), WAIT).toMatchObject([{ requests: 1 }]);
    expect(counts.uncounted).toBe(0);
  });

  test("serves though the collector is not there, and tells what it did not get", async () => {
    const otlp = { endpoint: "http://127.0.0.1:1" };
    const { counts } = await telling({ tracing: { otlp } });
    expect((await ask(at, { host: "a.example" })).status).toBe(200);
    await expect.poll(() => plane.isReady, WAIT).toBe(true);
    await expect.poll(() => [...counts.telemetry.entries()], WAIT).toContainEqual(["span", "lost", 1]);
  });

  test("drains: unready at once, done when the request under way is; the next Envoy serves again", async () => {
    const first = startEnvoy();
    await serveOne();
    plane.begin();
    await expect.poll(() => plane.isReady, WAIT).toBe(true);
    const hold = Promise.withResolvers<void>();
    held = hold.promise;
    const answered = ask(at, { host: "a.example" });
    await reached.promise;
    let isDrained = false;
    const drained = plane.drain?.().then(() => {
      isDrained = true;
    });
    expect(plane.isReady).toBe(false);
    await expect.poll(probe, WAIT).not.toBe(200);
    await new Promise((resolve) => setTimeout(resolve, 4_000));
    expect(isDrained).toBe(false);
    hold.resolve();
    expect((await answered).status).toBe(200);
    await drained;
    await end(first);
    startEnvoy();
    await expect.poll(() => plane.isReady, WAIT).toBe(true);
    expect(await probe()).toBe(200);
  }, 30_000);
});

describe("what a pod is asked", () => {
  test.each([
    ["no token", undefined, 403],
    ["another token", "Bearer other", 403],
    ["the token", "Bearer right", 200],
  ])("is drained with %s: %s", async (_name, authorization, status) => {
    let isDrained = false;
    const run = async (): Promise<void> => {
      isDrained = true;
    };
    const server = await openPodAdmin("127.0.0.1:0", {
      isStarted: () => true,
      isReady: () => true,
      metrics: new PodMetrics("0").exposition,
      drain: { token: "right", run },
    });
    const place = server.address();
    if (place === null || typeof place === "string") throw new Error("the server has no port");
    const headers = authorization === undefined ? {} : { authorization };
    const answer = await fetch(`http://127.0.0.1:${place.port}/drain`, { headers });
    expect(answer.status).toBe(status);
    expect(isDrained).toBe(status === 200);
    server.close();
  });

  test("nobody drains a pod that has no token to show", async () => {
    const drain = { token: "", run: async () => {} };
    const server = await openPodAdmin("127.0.0.1:0", {
      isStarted: () => true,
      isReady: () => true,
      metrics: new PodMetrics("0").exposition,
      drain,
    });
    const place = server.address();
    if (place === null || typeof place === "string") throw new Error("the server has no port");
    const headers = { authorization: "Bearer " };
    expect((await fetch(`http://127.0.0.1:${place.port}/drain`, { headers })).status).toBe(403);
    server.close();
  });
});
