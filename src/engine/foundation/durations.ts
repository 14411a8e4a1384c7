const UNITS: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 };

/**
 * Milliseconds of a GEP-2257 duration such as `1h30m` or `500ms`; admission has checked the form.
 */
export function milliseconds(duration: string): number {
  let total = 0;
  for (const [, amount, unit] of duration.matchAll(/(\d+)(h|ms|m|s)/g))
    total += Number(amount) * (UNITS[unit ?? ""] ?? 0);
  return total;
}
