/** Tells of requests: lines, log records and spans, each from the same record. */

import type { PlanDelta } from "../../plan/plan.ts";
import type { RequestRecord } from "../request-record.ts";
import type { TelemetryCounts, TelemetrySignal } from "../traffic/telemetry-counts.ts";
import { LineWriter } from "./line-writer.ts";
import { jsonLine, type RenderLine, textLine } from "./log-lines.ts";
import { OtlpExporter } from "./otlp-exporter.ts";
import { logMessage, type OtlpResource, type Signal, spanMessage } from "./otlp-messages.ts";
import { PlanNames } from "./plan-names.ts";
import { type NamedRequest, named } from "./request-fields.ts";
import type { CollectorSettings, SamplingSettings, TelemetrySettings } from "./telemetry-settings.ts";

export interface TelemetryOptions {
  readonly settings: TelemetrySettings;
  readonly resource: OtlpResource;
  readonly counts: TelemetryCounts;
  /** Where lines go; standard output when not set. */
  readonly linesTo?: number | string;
  readonly onProblem: (problem: string) => void;
}

/** Which requests a data plane is to tell of, and to whom. */
export interface TelemetryHooks {
  readonly onRequestEnd: (record: RequestRecord) => void;
  readonly onlySampled: boolean;
  readonly tracing: SamplingSettings | undefined;
}

interface Sink {
  tell(request: NamedRequest): void;
  close(): Promise<void>;
}

const STDOUT = 1;
/** Between two words about the same trouble. */
const QUIET_MS = 60_000;

export class Telemetry {
  readonly #options: TelemetryOptions;
  readonly #names: PlanNames = new PlanNames();
  readonly #sinks: readonly Sink[];
  readonly #told: Map<TelemetrySignal, number> = new Map();

  /** Throws when a file cannot be opened, or a format has a name that is no field's. */
  constructor(options: TelemetryOptions) {
    this.#options = options;
    const { accessLog, tracing } = options.settings;
    this.#sinks = [
      ...(accessLog?.stdout === undefined ? [] : [this.#lines(rendering(accessLog.stdout.text))]),
      ...(accessLog?.otlp === undefined ? [] : [this.#otlp("otlp_log", "logs", accessLog.otlp, logMessage)]),
      ...(tracing === undefined ? [] : [this.#otlp("span", "traces", tracing.otlp, spanMessage)]),
    ];
  }

  get hooks(): TelemetryHooks {
    const { accessLog, tracing } = this.#options.settings;
    return {
      onRequestEnd: (record) => this.tell(record),
      onlySampled: accessLog?.stdout === undefined && accessLog?.otlp === undefined,
      tracing,
    };
  }

  /** Names are known while the plan has them. */
  apply(delta: PlanDelta): void {
    this.#names.apply(delta);
  }

  tell(record: RequestRecord): void {
    const request = named(record, this.#names);
    for (const sink of this.#sinks) sink.tell(request);
  }

  /** Requests that were served, and whose records were lost before they came here. */
  missed(requests: number): void {
    const { accessLog } = this.#options.settings;
    const problem = "Envoy had no room for them";
    if (accessLog?.stdout !== undefined) this.#lost("access_log", requests, problem);
    if (accessLog?.otlp !== undefined) this.#lost("otlp_log", requests, problem);
  }

  async close(): Promise<void> {
    await Promise.all(this.#sinks.map((sink) => sink.close()));
  }

  #lines(render: RenderLine): Sink {
    const { counts, linesTo = STDOUT } = this.#options;
    counts.begin("access_log");
    const writer = new LineWriter({
      to: linesTo,
      onWritten: (lines) => counts.add("access_log", "sent", lines),
      onLost: (lines) => this.#lost("access_log", lines, "whoever reads them is too slow"),
      onError: (error) => this.#options.onProblem(`the access log cannot be written: ${error.message}`),
    });
    return { tell: (request) => writer.write(render(request)), close: () => writer.close() };
  }

  #otlp(
    signal: TelemetrySignal,
    otlpSignal: Signal,
    collector: CollectorSettings,
    encode: (request: NamedRequest) => Buffer | undefined,
  ): Sink {
    const { counts, resource } = this.#options;
    counts.begin(signal);
    const exporter = new OtlpExporter({
      signal: otlpSignal,
      collector,
      resource,
      onSent: (records) => counts.add(signal, "sent", records),
      onLost: (records, problem) => this.#lost(signal, records, problem),
    });
    return {
      tell: (request) => {
        const record = encode(request);
        if (record !== undefined) exporter.add(record);
      },
      close: () => exporter.close(),
    };
  }

  #lost(signal: TelemetrySignal, records: number, problem: string): void {
    this.#options.counts.add(signal, "lost", records);
    const now = performance.now();
    if (now - (this.#told.get(signal) ?? Number.NEGATIVE_INFINITY) < QUIET_MS) return;
    this.#told.set(signal, now);
    this.#options.onProblem(`records of requests are lost (${signal}): ${problem}`);
  }
}

function rendering(text: string | undefined): RenderLine {
  if (text === undefined) return jsonLine;
  const render = textLine(text);
  if (render === undefined)
    throw new Error(`the format of the access log has a field that there is not: ${text}`);
  return render;
}
