import type { Metric } from "prom-client";
import { METRICS } from "./metric-table.ts";

/** What a data plane tells of a finished request, as far as it is counted. */
export interface CountedRequest {
  /** A pattern of the plan; absent when no listener was found. */
  readonly hostname?: string;
  readonly status: number;
  readonly durationMs: number;
  readonly bytesReceived: number;
  readonly bytesSent: number;
  readonly listener?: string;
  /** Why the data plane itself answered. */
  readonly reason?: string;
}

/** For requests that no listener is for. */
const NOBODY = "none";
const EVERYBODY = "*";

const CODES = ["000", "1xx", "2xx", "3xx", "4xx", "5xx"];
/** Upper bounds, in seconds; what takes longer is counted behind the last. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Where a tally has what: the classes of status first. */
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
 * Requests by hostname: a row of plain numbers each. They are counted for every request and read
 * now and then, so the labels and names that Prometheus wants are put together when it asks.
 */
export class RequestTallies {
  readonly #tallies: Map<string, Float64Array> = new Map();

  count({ hostname, status, durationMs, bytesReceived, bytesSent }: CountedRequest): void {
    const name = hostname === undefined ? NOBODY : hostname || EVERYBODY;
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

  /** Tenants come and go: a hostname that nobody serves any more must not stay for ever. */
  forgetAllBut(current: ReadonlySet<string>): void {
    for (const hostname of this.#tallies.keys()) {
      if (hostname !== NOBODY && hostname !== EVERYBODY && !current.has(hostname)) {
        this.#tallies.delete(hostname);
      }
    }
  }

  /** In the form that a registry of prom-client takes. */
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
    // The registry asks a metric for its name and for `get`, whatever else its class can do.
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

/** Each bucket counts everything up to its bound. */
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

/** Most requests are quick: the search begins with the shortest. */
function bucketOf(seconds: number): number {
  let bucket = 0;
  while (bucket < BUCKETS.length && seconds > (BUCKETS[bucket] as number)) bucket++;
  return bucket;
}

function unknown(name: string): never {
  throw new Error(`${name} is not in the table of metrics`);
}
