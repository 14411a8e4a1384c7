import type { Metric, Registry } from "prom-client";
import { TRAFFIC_METRICS, type TrafficMetricName } from "./metric-table.ts";
import { countedCodes, type ListenerLabels, type TrafficCounts } from "./traffic-counts.ts";
import {
  BUCKETS,
  FIRST_BUCKET,
  type ListenerNumbers,
  RECEIVED,
  REFUSED_CONNECTIONS,
  RETRIES,
  SECONDS,
  SENT,
} from "./traffic-numbers.ts";

interface Sample {
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
  readonly metricName?: string;
}

/** The limit that a reason stands for. */
const limitOfReason: ReadonlyMap<string, string> = new Map([
  ["TenantRequestLimit", "requests"],
  ["TenantConnectionLimit", "connections"],
  ["TenantBufferLimit", "bufferedBytes"],
  ["BackendLimit", "backend"],
]);

const readers: Readonly<Record<TrafficMetricName, (counts: TrafficCounts) => readonly Sample[]>> = {
  mergeway_requests_total: (counts) =>
    ofListeners(counts, (labels, { routes }) =>
      [...routes].flatMap(([route, codes]) =>
        countedCodes(codes).map(([code, value]) => ({ labels: { ...labels, route, code }, value })),
      ),
    ),
  mergeway_request_duration_seconds: (counts) => ofListeners(counts, durations),
  mergeway_request_bytes_total: (counts) => ofListeners(counts, sumAt(RECEIVED)),
  mergeway_response_bytes_total: (counts) => ofListeners(counts, sumAt(SENT)),
  mergeway_retries_total: (counts) => ofListeners(counts, sumAt(RETRIES)),
  mergeway_local_replies_total: (counts) =>
    ofListeners(counts, (labels, { replies }) =>
      Array.from(replies, ([reason, value]) => ({ labels: { ...labels, reason }, value })),
    ),
  mergeway_upstream_errors_total: (counts) =>
    [...counts.upstreamErrors()].flatMap(([labels, reasons]) =>
      Array.from(reasons, ([reason, value]) => ({ labels: { ...labels, reason }, value })),
    ),
  mergeway_tenant_refusals_total: tenantRefusals,
  mergeway_connections_total: (counts) => [{ labels: {}, value: counts.connections }],
  mergeway_open_connections: (counts) => [{ labels: {}, value: counts.openConnections }],
  mergeway_tls_handshakes_total: (counts) =>
    Array.from(counts.handshakes, ([result, value]) => ({ labels: { result }, value })),
  mergeway_uncounted_requests_total: (counts) => [{ labels: {}, value: counts.uncounted }],
  mergeway_telemetry_records_total: (counts) =>
    Array.from(counts.telemetry.entries(), ([signal, result, value]) => ({
      labels: { signal, result },
      value,
    })),
};

/**
 * Counting happens for every request and scraping rarely, so labels and samples are made at the
 * scrape.
 */
export function registerTraffic(registry: Registry, counts: TrafficCounts): void {
  for (const [name, { type, help }] of Object.entries(TRAFFIC_METRICS)) {
    const read = readers[name as TrafficMetricName];
    // A registry of prom-client uses only `name` and `get` of a metric.
    const metric = {
      name,
      get: () => Promise.resolve({ name, type, help, aggregator: "sum", values: read(counts) }),
    };
    registry.registerMetric(metric as unknown as Metric);
  }
}

function ofListeners(
  counts: TrafficCounts,
  read: (labels: ListenerLabels, numbers: ListenerNumbers) => readonly Sample[],
): readonly Sample[] {
  return [...counts.listeners()].flatMap(([labels, numbers]) => read(labels, numbers));
}

function sumAt(at: number): (labels: ListenerLabels, numbers: ListenerNumbers) => readonly Sample[] {
  return (labels, { sums }) => [{ labels: { ...labels }, value: sums[at] ?? 0 }];
}

/** Buckets of Prometheus are cumulative. */
function durations(labels: ListenerLabels, { sums }: ListenerNumbers): readonly Sample[] {
  const name = "mergeway_request_duration_seconds";
  let count = 0;
  const samples: Sample[] = [...BUCKETS, "+Inf"].map((le, at) => {
    count += sums[FIRST_BUCKET + at] ?? 0;
    return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: count };
  });
  samples.push({ metricName: `${name}_sum`, labels: { ...labels }, value: sums[SECONDS] ?? 0 });
  samples.push({ metricName: `${name}_count`, labels: { ...labels }, value: count });
  return samples;
}

/** An owner with several listeners has one sum. */
function tenantRefusals(counts: TrafficCounts): readonly Sample[] {
  const sums = new Map<string, { readonly labels: Sample["labels"]; value: number }>();
  for (const [{ kind, namespace, name }, { sums: numbers, replies }] of counts.listeners()) {
    const add = (limit: string, count: number): void => {
      if (count === 0) return;
      const key = [kind, namespace, name, limit].join("\n");
      const sum = sums.get(key) ?? { labels: { kind, namespace, name, limit }, value: 0 };
      sums.set(key, sum);
      sum.value += count;
    };
    add("connections", numbers[REFUSED_CONNECTIONS] ?? 0);
    for (const [reason, count] of replies) {
      const limit = limitOfReason.get(reason);
      if (limit !== undefined) add(limit, count);
    }
  }
  return [...sums.values()];
}
