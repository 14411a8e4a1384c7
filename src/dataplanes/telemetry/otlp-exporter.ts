/**
 * Sends records to a collector in batches. A collector that is slow, away or refuses costs a
 * bounded number of records, and what it did not get is told as lost; nothing that serves waits
 * for it.
 */

import { exportRequest, type OtlpResource, rejectedRecords, type Signal } from "./otlp-messages.ts";
import { type OtlpTransport, otlpTransport } from "./otlp-transport.ts";
import type { CollectorSettings } from "./telemetry-settings.ts";

export interface OtlpExporterOptions {
  readonly signal: Signal;
  readonly collector: CollectorSettings;
  readonly resource: OtlpResource;
  readonly onSent: (records: number) => void;
  readonly onLost: (records: number, problem: string) => void;
  readonly batchMs?: number;
  readonly firstRetryMs?: number;
}

/** As OpenTelemetry's own batch processors have them, but for the shorter wait. */
const MAX_QUEUE = 2_048;
const MAX_BATCH = 512;
const BATCH_MS = 1_000;
const ATTEMPTS = 4;
const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 10_000;
const CLOSE_MS = 2_000;

export class OtlpExporter {
  readonly #options: OtlpExporterOptions;
  readonly #transport: OtlpTransport;
  readonly #stopped: AbortController = new AbortController();
  #queue: Buffer[] = [];
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | undefined;

  constructor(options: OtlpExporterOptions) {
    this.#options = options;
    this.#transport = otlpTransport(options.collector);
  }

  add(record: Buffer): void {
    if (this.#queue.length >= MAX_QUEUE) {
      this.#options.onLost(1, "too many records wait");
      return;
    }
    this.#queue.push(record);
    if (this.#queue.length >= MAX_BATCH) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), this.#options.batchMs ?? BATCH_MS).unref();
  }

  /** Sends what waits, within a moment; what is left is lost. */
  async close(): Promise<void> {
    const limit = setTimeout(() => this.#stop(), CLOSE_MS);
    while (this.#queue.length > 0 && !this.#stopped.signal.aborted) {
      this.#flush();
      await this.#sending;
    }
    await this.#sending;
    clearTimeout(limit);
    this.#stop();
    if (this.#queue.length > 0) this.#options.onLost(this.#queue.length, "the process ends");
    this.#queue = [];
  }

  #stop(): void {
    this.#stopped.abort();
    clearTimeout(this.#timer);
    this.#transport.close();
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined;
    });
  }

  async #sendAll(): Promise<void> {
    while (this.#queue.length > 0 && !this.#stopped.signal.aborted) {
      const batch = this.#queue.splice(0, MAX_BATCH);
      await this.#send(exportRequest(this.#options.resource, batch), batch.length);
    }
  }

  async #send(body: Buffer, records: number): Promise<void> {
    const { signal, onSent, onLost, firstRetryMs = FIRST_RETRY_MS } = this.#options;
    let wait = firstRetryMs;
    for (let attempt = 1; ; attempt++) {
      const outcome = await this.#transport.send(signal, body);
      if (outcome.type === "taken") {
        const rejected = Math.min(rejectedRecords(outcome.response), records);
        if (rejected > 0) onLost(rejected, "the collector has rejected them");
        return onSent(records - rejected);
      }
      if (outcome.type === "refused" || attempt === ATTEMPTS || this.#stopped.signal.aborted)
        return onLost(records, outcome.problem);
      await this.#pause(Math.min(outcome.retryAfterMs ?? wait, LONGEST_RETRY_MS));
      wait *= 2;
    }
  }

  #pause(ms: number): Promise<void> {
    const { signal } = this.#stopped;
    return new Promise((resolve) => {
      if (signal.aborted) return resolve();
      const timer = setTimeout(resolve, ms);
      signal.addEventListener("abort", () => resolve(clearTimeout(timer)), { once: true });
    });
  }
}
