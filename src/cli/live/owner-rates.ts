/** Requests by owner, between two readings of the admin server. */

export interface RequestTotals {
  /** Milliseconds. */
  readonly at: number;
  readonly items: readonly {
    /** `Kind/namespace/name#section` */
    readonly listener: string;
    readonly requests: number;
    readonly errors: number;
  }[];
}

export interface OwnerRate {
  readonly owner: string;
  readonly listeners: number;
  /** In a second. */
  readonly requests: number;
  readonly errors: number;
  /** Since the process began. */
  readonly total: number;
}

/** The busiest first. A listener that is new in the second reading began at 0. */
export function ownerRates(before: RequestTotals, now: RequestTotals): readonly OwnerRate[] {
  const seconds = Math.max(0.001, (now.at - before.at) / 1_000);
  const earlier = new Map(before.items.map((item) => [item.listener, item]));
  const grown = (value: number, then = 0): number => (value < then ? value : value - then) / seconds;
  const owners = new Map<string, OwnerRate>();
  for (const { listener, requests, errors } of now.items) {
    const owner = listener.slice(0, listener.lastIndexOf("#"));
    const then = earlier.get(listener);
    const sum = owners.get(owner) ?? { owner, listeners: 0, requests: 0, errors: 0, total: 0 };
    owners.set(owner, {
      owner,
      listeners: sum.listeners + 1,
      requests: sum.requests + grown(requests, then?.requests),
      errors: sum.errors + grown(errors, then?.errors),
      total: sum.total + requests,
    });
  }
  return [...owners.values()].sort(
    (a, b) => b.requests - a.requests || b.total - a.total || (a.owner < b.owner ? -1 : 1),
  );
}
