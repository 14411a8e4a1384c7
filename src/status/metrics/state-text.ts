/**
 * A snapshot in the text format of Prometheus: all samples of a metric together, in pieces between
 * which the event loop runs. prom-client would first make a table of all samples, and then one
 * string: with 2,500 sets that stops the process for longer than a change takes.
 */
import { setImmediate } from "node:timers/promises";
import type { JudgedObject, StateFamily } from "./state-family.ts";
import {
  type IdentityLabel,
  type KindMetrics,
  OMITTED_OBJECTS,
  STATE_METRICS,
} from "./state-metric-table.ts";
import type { StateSnapshot } from "./state-snapshot.ts";

const PIECE = 65_536;

/** For as long as somebody reads. */
export async function* stateText(snapshot: StateSnapshot): AsyncGenerator<string> {
  let text = "";
  for (const lines of linesOf(snapshot)) {
    text += lines;
    if (text.length < PIECE) continue;
    yield text;
    text = "";
    await setImmediate();
  }
  yield text;
}

function* linesOf({ objects, omitted }: StateSnapshot): Generator<string> {
  for (const metrics of STATE_METRICS) {
    const { kinds, prefix, identity, families } = metrics;
    const judged = kinds.flatMap((kind) => objects.get(kind) ?? []);
    const identities: string[] = [];
    for (const family of families as KindFamilies) {
      const name = `${prefix}_${family.suffix}`;
      yield head(name, family.help);
      for (const [index, object] of judged.entries()) {
        identities[index] ??= labelText(identity, identityValues(identity, object));
        yield samplesText(name, family, { object, identity: identities[index] });
      }
    }
  }
  const { name, help, labels } = OMITTED_OBJECTS;
  yield head(name, help);
  for (const [kind, count] of omitted) yield `${name}{${labelText(labels, [kind])}} ${count}\n`;
}

/** A snapshot has objects of the shape that the families of their kind read. */
type KindFamilies = readonly StateFamily[] & KindMetrics["families"];

function head(name: string, help: string): string {
  return `# HELP ${name} ${help}\n# TYPE ${name} gauge\n`;
}

/** Prometheus takes no two samples of the same labels: what an object lists twice is told once. */
function samplesText(
  name: string,
  { labels, samples }: StateFamily,
  { object, identity }: { readonly object: JudgedObject; readonly identity: string },
): string {
  const found = samples(object);
  const told = found.length > 1 ? new Set<string>() : undefined;
  let text = "";
  for (const { values, value } of found) {
    const own = labelText(labels, values);
    if (told?.has(own)) continue;
    told?.add(own);
    text += `${name}{${identity}${own === "" ? "" : ","}${own}} ${value}\n`;
  }
  return text;
}

function identityValues(
  identity: readonly IdentityLabel[],
  { resource: { kind, metadata } }: JudgedObject,
): readonly (string | undefined)[] {
  return identity.map((label) => (label === "customresource_kind" ? kind : metadata[label]));
}

/** An empty label is none, for Prometheus. */
function labelText(labels: readonly string[], values: readonly (string | number | undefined)[]): string {
  let text = "";
  for (let index = 0; index < labels.length; index++) {
    const value = values[index];
    if (value === undefined || value === "") continue;
    text += `${text === "" ? "" : ","}${labels[index]}="${typeof value === "number" ? value : escaped(value)}"`;
  }
  return text;
}

const SPECIAL = /[\\"\n]/;

function escaped(value: string): string {
  if (!SPECIAL.test(value)) return value;
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
