/** What was told of requests elsewhere, and what could not be. */

export const TELEMETRY_SIGNALS = ["access_log", "otlp_log", "span"] as const;
export type TelemetrySignal = (typeof TELEMETRY_SIGNALS)[number];
export type TelemetryResult = "sent" | "lost";

export class TelemetryCounts {
  readonly #counts: Map<TelemetrySignal, Record<TelemetryResult, number>> = new Map();

  add(signal: TelemetrySignal, result: TelemetryResult, records: number): void {
    const counts = this.#counts.get(signal) ?? { sent: 0, lost: 0 };
    this.#counts.set(signal, counts);
    counts[result] += records;
  }

  /** A signal is here from when it is switched on. */
  begin(signal: TelemetrySignal): void {
    this.add(signal, "sent", 0);
  }

  *entries(): Generator<readonly [TelemetrySignal, TelemetryResult, number]> {
    for (const [signal, { sent, lost }] of this.#counts) {
      yield [signal, "sent", sent];
      yield [signal, "lost", lost];
    }
  }
}
