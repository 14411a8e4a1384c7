/** Records on their way to a collector that answers, refuses, is slow or is not there. */
import { describe, expect, onTestFinished, test } from "vitest";
import type { RequestRecord } from "../../../src/dataplanes/request-record.ts";
import { OtlpExporter, type OtlpExporterOptions } from "../../../src/dataplanes/telemetry/otlp-exporter.ts";
import { logMessage, spanMessage } from "../../../src/dataplanes/telemetry/otlp-messages.ts";
import { PlanNames } from "../../../src/dataplanes/telemetry/plan-names.ts";
import { named } from "../../../src/dataplanes/telemetry/request-fields.ts";
import type { CollectorSettings } from "../../../src/dataplanes/telemetry/telemetry-settings.ts";
import { authority, issue } from "../support/certificates.ts";
import { type CollectorOptions, OtlpCollector } from "../support/otlp-collector.ts";

const ca = authority();
const certificate = issue(ca, ["localhost"]);
const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SOON = { timeout: 20_000, interval: 10 };

const record: RequestRecord = {
  time: 1_790_000_000_000.5,
  client: "192.0.2.1",
  protocol: "HTTP/1.1",
  scheme: "http",
  method: "GET",
  authority: "shop.example:8080",
  path: "/cart",
  requestId: "id-1",
  gateway: "infra/edge",
  port: 8080,
  route: { kind: "HTTPRoute", namespace: "shop", name: "web", rule: 2, match: 0 },
  status: 503,
  bytesReceived: 300,
  bytesSent: 5_000_000_000,
  durationMs: 2.5,
  attempts: 3,
  reason: "NoEndpoints",
  trace: { traceId: TRACE, spanId: "00f067aa0ba902b7", parentId: "b7ad6b7169203331", isSampled: true },
};
const names = new PlanNames();

function span(more: Partial<RequestRecord> = {}): Buffer {
  return spanMessage(named({ ...record, ...more }, names)) ?? Buffer.alloc(0);
}

interface Bed {
  readonly collector: OtlpCollector;
  readonly exporter: OtlpExporter;
  readonly counts: { sent: number; lost: number };
  readonly problems: Set<string>;
}

async function bed(
  how: CollectorOptions = {},
  more: Partial<OtlpExporterOptions> & { readonly settings?: Partial<CollectorSettings> } = {},
): Promise<Bed> {
  const collector = new OtlpCollector(how);
  const endpoint = await collector.open();
  onTestFinished(() => collector.close());
  const counts = { sent: 0, lost: 0 };
  const problems = new Set<string>();
  const { settings, ...options } = more;
  const exporter = new OtlpExporter({
    signal: "traces",
    collector: {
      endpoint,
      ...(how.protocol === undefined ? {} : { protocol: how.protocol }),
      ...(how.certificate === undefined ? {} : { certificateAuthority: ca.cert }),
      ...settings,
    },
    resource: { service: "infra/edge", instance: "pod-1", version: "1.2.3" },
    onSent: (records) => {
      counts.sent += records;
    },
    onLost: (records, problem) => {
      counts.lost += records;
      problems.add(problem);
    },
    batchMs: 10,
    firstRetryMs: 10,
    ...options,
  });
  onTestFinished(() => exporter.close());
  return { collector, exporter, counts, problems };
}

const WAYS: readonly (readonly [string, CollectorOptions])[] = [
  ["HTTP", { protocol: "HTTP" }],
  ["HTTP with TLS", { protocol: "HTTP", certificate }],
  ["gRPC", { protocol: "GRPC" }],
  ["gRPC with TLS", { protocol: "GRPC", certificate }],
];

describe("the exporter of records", () => {
  test.each(WAYS)("a span reaches a collector over %s, as the conventions have it", async (_, how) => {
    const { collector, exporter, counts } = await bed(how);
    exporter.add(span());
    await expect.poll(() => counts.sent, SOON).toBe(1);
    expect(collector.spans).toEqual([
      {
        signal: "traces",
        resource: {
          "service.name": "infra/edge",
          "service.instance.id": "pod-1",
          "service.version": "1.2.3",
        },
        scope: "mergeway",
        name: "GET",
        traceId: TRACE,
        spanId: "00f067aa0ba902b7",
        parentId: "b7ad6b7169203331",
        kind: 2,
        start: 1_790_000_000_000_500_000n,
        end: 1_790_000_000_003_000_000n,
        status: 2,
        body: "",
        attributes: {
          "http.request.method": "GET",
          "network.protocol.name": "http",
          "network.protocol.version": "1.1",
          "server.address": "shop.example",
          "http.response.status_code": 503,
          "http.request.resend_count": 2,
          "error.type": "NoEndpoints",
          "client.address": "192.0.2.1",
          "url.scheme": "http",
          "mergeway.authority": "shop.example:8080",
          "url.path": "/cart",
          "mergeway.request_id": "id-1",
          "mergeway.gateway": "infra/edge",
          "server.port": 8080,
          "mergeway.route.kind": "HTTPRoute",
          "mergeway.route.namespace": "shop",
          "mergeway.route.name": "web",
          "mergeway.route.rule": 2,
          "http.request.body.size": 300,
          "http.response.body.size": 5_000_000_000,
          "mergeway.reason": "NoEndpoints",
        },
      },
    ]);
  });

  test.each(WAYS)("a log record reaches a collector over %s", async (_, how) => {
    const { collector, exporter, counts } = await bed(how, { signal: "logs" });
    exporter.add(logMessage(named({ ...record, method: "BREW" }, names)));
    await expect.poll(() => counts.sent, SOON).toBe(1);
    expect(collector.logs[0]).toMatchObject({
      name: "mergeway.request",
      traceId: TRACE,
      body: "BREW 503",
      attributes: {
        "http.request.method": "_OTHER",
        "http.request.method_original": "BREW",
        "mergeway.duration_ms": 2.5,
      },
    });
  });

  test("a request that is not sampled makes no span", () => {
    const trace = { traceId: TRACE, spanId: "00f067aa0ba902b7", isSampled: false };
    expect(spanMessage(named({ ...record, trace }, names))).toBeUndefined();
  });

  test.each(WAYS.filter(([, how]) => how.certificate !== undefined))(
    "a collector that another authority speaks for gets nothing over %s",
    async (_, how) => {
      const { collector, exporter, counts } = await bed(how, {
        settings: { certificateAuthority: authority().cert },
      });
      exporter.add(span());
      await expect.poll(() => counts.lost, SOON).toBe(1);
      expect(collector.requests).toBe(0);
    },
  );

  test.each([
    ["HTTP", 503],
    ["GRPC", 14],
  ] as const)("what a collector cannot take now over %s is sent again", async (protocol, status) => {
    const answer = (request: number): number | undefined => (request < 3 ? status : undefined);
    const { collector, exporter, counts } = await bed({ protocol, answer });
    exporter.add(span());
    await expect.poll(() => counts.sent, SOON).toBe(1);
    expect(collector.requests).toBe(3);
    expect(counts.lost).toBe(0);
  });

  test.each([
    ["HTTP", 400],
    ["GRPC", 3],
  ] as const)("what a collector refuses over %s is lost at once", async (protocol, status) => {
    const { collector, exporter, counts } = await bed({ protocol, answer: () => status });
    exporter.add(span());
    await expect.poll(() => counts.lost, SOON).toBe(1);
    expect(collector.requests).toBe(1);
  });

  test("what a collector says it has not taken is lost", async () => {
    const { exporter, counts } = await bed({ rejects: 2 });
    for (let at = 0; at < 5; at++) exporter.add(span());
    await expect.poll(() => counts, SOON).toEqual({ sent: 3, lost: 2 });
  });

  test.each([{ isStuck: true }, { isStuck: true, protocol: "GRPC" }] as const)(
    "a collector that never answers holds a bounded number of records, and each is accounted for: %j",
    async (how) => {
      const { exporter, counts } = await bed(how);
      for (let at = 0; at < 10_000; at++) exporter.add(span());
      expect(counts.lost).toBeGreaterThan(10_000 - 2 * 2_048);
      await exporter.close();
      expect(counts).toEqual({ sent: 0, lost: 10_000 });
    },
  );

  test("a collector that is not there loses records after some attempts", async () => {
    const { collector, exporter, counts } = await bed();
    collector.close();
    exporter.add(span());
    await expect.poll(() => counts.lost, SOON).toBe(1);
  });

  test("what waits is sent when the process ends", async () => {
    const { collector, exporter, counts } = await bed({}, { batchMs: 60_000 });
    for (let at = 0; at < 1_000; at++) exporter.add(span());
    await exporter.close();
    expect(counts).toEqual({ sent: 1_000, lost: 0 });
    expect(collector.spans).toHaveLength(1_000);
  });
});
