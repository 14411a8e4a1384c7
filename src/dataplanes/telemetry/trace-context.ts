/**
 * Traces of requests (W3C Trace Context, `traceparent`): who belongs to which, and who is sampled.
 * A client can neither choose that its request is sampled nor, unless its context counts, the trace
 * that it is in.
 */

import { randomFillSync } from "node:crypto";
import type { RuleOrigin } from "../../plan/rule.ts";
import type { RequestTrace } from "../request-record.ts";
import type { SamplingOverride, SamplingSettings } from "./telemetry-settings.ts";

export interface TraceParent {
  readonly traceId: string;
  readonly parentId: string;
  readonly isSampled: boolean;
}

/** Who is asked: whose percentage counts. */
export interface SampledObjects {
  readonly owner?: Pick<SamplingOverride, "namespace" | "name"> & { readonly kind: string };
  readonly route?: Pick<RuleOrigin, "kind" | "namespace" | "name"> | undefined;
}

/** Version 00, or a later one that begins the same way; all zeros is no id. */
const TRACEPARENT =
  /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/;

export function readTraceparent(text: string | undefined): TraceParent | undefined {
  const found = text === undefined || text.length > 512 ? null : TRACEPARENT.exec(text);
  if (found === null || (found[0].startsWith("00") && found[0].length !== 55)) return undefined;
  const [, traceId = "", parentId = "", flags = ""] = found;
  return { traceId, parentId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

export function traceparentOf({ traceId, spanId, isSampled }: RequestTrace): string {
  return `00-${traceId}-${spanId}-${isSampled ? "01" : "00"}`;
}

/** Draws for requests; each thread has its own. */
export class Sampler {
  readonly #settings: SamplingSettings;
  readonly #draw: () => number;

  constructor(settings: SamplingSettings, draw: () => number = Math.random) {
    this.#settings = settings;
    this.#draw = draw;
  }

  /** Whether what clients say of traces counts. */
  get continuesClients(): boolean {
    return this.#settings.clientContext === "Continue";
  }

  begin(traceparent: string | undefined, objects: SampledObjects): RequestTrace {
    const parent = this.continuesClients ? readTraceparent(traceparent) : undefined;
    const isDrawn = this.#draw() * 100 < percentageOf(this.#settings, objects);
    if (parent === undefined) return { traceId: randomId(16), spanId: randomId(8), isSampled: isDrawn };
    const { traceId, parentId } = parent;
    return { traceId, spanId: randomId(8), parentId, isSampled: parent.isSampled && isDrawn };
  }
}

/** The route's own, or that of the object that carries the listener, or the Gateway's. */
export function percentageOf(
  { samplingPercentage = 100, overrides = [] }: SamplingSettings,
  { owner, route }: SampledObjects,
): number {
  const found = overrides.find(({ kind, namespace, name }) =>
    [owner, route].some((each) => each?.kind === kind && each.namespace === namespace && each.name === name),
  );
  return found?.samplingPercentage ?? samplingPercentage;
}

const random: Buffer = Buffer.alloc(16 * 256);
let used: number = random.length;

/** Lower-case hexadecimal, never all zeros; bytes are drawn for many ids at a time. */
function randomId(bytes: number): string {
  for (;;) {
    if (used + bytes > random.length) {
      randomFillSync(random);
      used = 0;
    }
    const id = random.toString("hex", used, used + bytes);
    used += bytes;
    if (!/^0+$/.test(id)) return id;
  }
}
