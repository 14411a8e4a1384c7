/** Requests per second of every listener, from two readings of the counters. */
export interface TrafficReading {
  /** Milliseconds. */
  readonly at: number;
  readonly items: readonly {
    readonly listener: string;
    readonly requests: number;
    readonly errors: number;
  }[];
}

export interface Rate {
  readonly requests: number;
  readonly errors: number;
}

/** By `Kind/namespace/name#section`; listeners without requests in between are left out. */
export type Rates = ReadonlyMap<string, Rate>;

export function ratesBetween(before: TrafficReading | undefined, now: TrafficReading): Rates {
  if (before === undefined) return new Map();
  const seconds = Math.max((now.at - before.at) / 1000, 0.001);
  const earlier = new Map(before.items.map((item) => [item.listener, item]));
  const rates = new Map<string, Rate>();
  for (const { listener, requests, errors } of now.items) {
    const was = earlier.get(listener) ?? { requests: 0, errors: 0 };
    // Fewer than before: the process has begun anew.
    const [more, wrong] = [requests - was.requests, errors - was.errors];
    if (more > 0) rates.set(listener, { requests: more / seconds, errors: Math.max(0, wrong) / seconds });
  }
  return rates;
}

export function sumOf(rates: Rates, listeners: Iterable<string>): Rate {
  let requests = 0;
  let errors = 0;
  for (const listener of listeners) {
    const rate = rates.get(listener);
    requests += rate?.requests ?? 0;
    errors += rate?.errors ?? 0;
  }
  return { requests, errors };
}

export function rateText(perSecond: number): string {
  if (perSecond >= 9.95) return `${Math.round(perSecond).toLocaleString("en")}/s`;
  return perSecond === 0 ? "0/s" : `${perSecond.toFixed(1)}/s`;
}
