import type { Metric } from "prom-client";
import { METRICS } from "./metric-table.ts";

/** The fields of a request record that are counted. */
export interface CountedRequest {
  /** The hostname pattern of the plan; absent when no listener matched. */
  readonly hostname?: string;
  readonly status: number;
  readonly durationMs: number;
  readonly bytesReceived: number;
  readonly bytesSent: number;
  readonly listener?: string;
  /** Why the data plane answered without a backend. */
  readonly reason?: string;
}

/** Labels of requests that no listener, or a listener without hostname, was for. */
const NO_LISTENER = "none";
const ANY_HOSTNAME = "*";

const CODES = ["000", "1xx", "2xx", "3xx", "4xx", "5xx"];
/** Upper bounds in seconds; longer requests count in the +Inf bucket. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Positions in a tally; the classes of status come first. */
const RECEIVED: number = CODES.length;
const SENT: number = RECEIVED + 1;
const SECONDS: number = SENT + 1;
const FIRST_BUCKET: number = SECONDS + 1;
const TALLY_SIZE: number = FIRST_BUCKET + BUCKETS.length + 1;

interface Sample {
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
  readonly metricName?: string;
}

/**
 * Request counters, one row of numbers for each hostname. Counting happens for every request and
 * scraping rarely, so labels and metric names are made at the scrape.
 */
export class RequestTallies {
  readonly #tallies: Map<string, Float64Array> = new Map();

  count({ hostname, status, durationMs, bytesReceived, bytesSent }: CountedRequest): void {
    const name = hostname === undefined ? NO_LISTENER : hostname || ANY_HOSTNAME;
    let tally = this.#tallies.get(name);
    if (tally === undefined) {
      tally = new Float64Array(TALLY_SIZE);
      this.#tallies.set(name, tally);
    }
    const seconds = durationMs / 1_000;
    add(tally, classOf(status), 1);
    add(tally, RECEIVED, bytesReceived);
    add(tally, SENT, bytesSent);
    add(tally, SECONDS, seconds);
    add(tally, FIRST_BUCKET + bucketOf(seconds), 1);
  }

  /** Drops hostnames that are no longer served, so that the table cannot grow without bound. */
  forgetAllBut(current: ReadonlySet<string>): void {
    for (const hostname of this.#tallies.keys()) {
      if (hostname !== NO_LISTENER && hostname !== ANY_HOSTNAME && !current.has(hostname)) {
        this.#tallies.delete(hostname);
      }
    }
  }

  /** Metrics that can be registered with prom-client. */
  metrics(): readonly Metric[] {
    return [
      this.#metric("mergeway_requests_total", codeSamples),
      this.#metric("mergeway_request_duration_seconds", durationSamples),
      this.#metric("mergeway_request_bytes_total", (hostname, tally) => [sample(hostname, tally, RECEIVED)]),
      this.#metric("mergeway_response_bytes_total", (hostname, tally) => [sample(hostname, tally, SENT)]),
    ];
  }

  #metric(name: string, samplesOf: (hostname: string, tally: Float64Array) => readonly Sample[]): Metric {
    const { type, help } = METRICS[name] ?? unknown(name);
    const values = (): readonly Sample[] =>
      [...this.#tallies].flatMap(([hostname, tally]) => samplesOf(hostname, tally));
    // A registry of prom-client uses only `name` and `get` of a metric.
    return {
      name,
      get: () => Promise.resolve({ name, type, help, aggregator: "sum", values: values() }),
    } as unknown as Metric;
  }
}

function codeSamples(hostname: string, tally: Float64Array): readonly Sample[] {
  return CODES.map((code, at) => ({ labels: { hostname, code }, value: tally[at] ?? 0 })).filter(
    ({ value }) => value > 0,
  );
}

/** Buckets of Prometheus are cumulative. */
function durationSamples(hostname: string, tally: Float64Array): readonly Sample[] {
  const name = "mergeway_request_duration_seconds";
  let count = 0;
  const samples: Sample[] = [...BUCKETS, "+Inf"].map((le, at) => {
    count += tally[FIRST_BUCKET + at] ?? 0;
    return { metricName: `${name}_bucket`, labels: { le, hostname }, value: count };
  });
  samples.push({ metricName: `${name}_sum`, labels: { hostname }, value: tally[SECONDS] ?? 0 });
  samples.push({ metricName: `${name}_count`, labels: { hostname }, value: count });
  return samples;
}

function sample(hostname: string, tally: Float64Array, at: number): Sample {
  return { labels: { hostname }, value: tally[at] ?? 0 };
}

function add(tally: Float64Array, at: number, amount: number): void {
  tally[at] = (tally[at] as number) + amount;
}

function classOf(status: number): number {
  return Math.max(0, Math.min(Math.trunc(status / 100), CODES.length - 1));
}

/** Linear from the shortest bucket, since most requests are quick. */
function bucketOf(seconds: number): number {
  let bucket = 0;
  while (bucket < BUCKETS.length && seconds > (BUCKETS[bucket] as number)) bucket++;
  return bucket;
}

function unknown(name: string): never {
  throw new Error(`${name} is not in the table of metrics`);
}
