#!/usr/bin/env node
/**
 * Validation compared: every document is read as `mergeway check` reads it and sent to the API
 * server as a dry run. Runs inside a cluster's network; admission.e2e.ts brings it there.
 */
import { type Agent, request } from "node:https";
import { isDeepStrictEqual, parseArgs } from "node:util";
import { formatPath } from "../../../src/api/admission/schema/field-error.ts";
import type { Kind } from "../../../src/api/resource.ts";
import { findCredentials } from "../../../src/kubernetes/credentials.ts";
import { PLURAL_OF_KIND } from "../../../src/kubernetes/kinds.ts";
import { readText } from "../../../src/sources/files/yaml/read-text.ts";
import { intendedDifference } from "./intended.ts";
import { Mutator } from "./mutate.ts";
import { Random } from "./random.ts";
import { type Fields, isFields, NAMESPACE, readSeeds, type Seed } from "./seeds.ts";

const PARALLEL = 20;
const MAX_RETRIES = 240;

interface Document {
  readonly seed: Seed;
  readonly text: string;
}

/** Undefined when the document is refused; why, for people. */
interface Verdict {
  readonly object?: Fields | undefined;
  readonly why: string;
}

export interface Comparison {
  readonly documents: number;
  readonly accepted: number;
  readonly refused: number;
  /** How many documents differ in a way that is meant, by the reason. */
  readonly intended: Readonly<Record<string, number>>;
  /** How many of each kind both accepted and both refused. */
  readonly kinds: Readonly<Record<string, readonly [number, number]>>;
  readonly differences: readonly Difference[];
}

export interface Difference {
  readonly kind: string;
  readonly what: string;
  readonly document: string;
  readonly ours: string;
  readonly server: string;
}

function ours({ text }: Document): Verdict {
  const { documents, errors } = readText(text, "document.json", {
    channel: "standard",
    provisionalChildGateways: false,
    unknownFields: "error",
  });
  const why = errors.map(({ path, rule, message }) => `${path ?? ""} ${rule}: ${message}`).join("; ");
  return { object: errors.length > 0 ? undefined : (documents[0]?.resource as unknown as Fields), why };
}

const credentials = await findCredentials({});
const { headers, agent } = await credentials.connection();
(agent as Agent).maxSockets = PARALLEL;

async function servers(document: Document): Promise<Verdict> {
  let { status, body } = await post(pathOf(document), document.text);
  // A server whose CRDs are new answers 429 for a while.
  for (let again = 0; status === 429 && again < MAX_RETRIES; again++) {
    await new Promise((resolve) => setTimeout(resolve, 500));
    ({ status, body } = await post(pathOf(document), document.text));
  }
  if (status === 201) return { object: JSON.parse(body) as Fields, why: "" };
  // No such version of the kind.
  if (status === 404) return { why: body.trim() };
  // Anything else would be about the request, not about the document.
  if (![400, 413, 422].includes(status))
    throw new Error(`${status} ${body.slice(0, 500)} to ${document.text}`);
  return { why: (JSON.parse(body) as { message: string }).message };
}

/** Where `kubectl` would send it: the document's own version of its kind. */
function pathOf({ seed: { kind }, text }: Document): string {
  const { apiVersion } = JSON.parse(text) as { apiVersion: string };
  const root = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  return `${root}${kind.namespaced ? `/namespaces/${NAMESPACE}` : ""}/${PLURAL_OF_KIND[kind.kind as Kind]}`;
}

function post(path: string, text: string): Promise<{ readonly status: number; readonly body: string }> {
  const url = new URL(`${path}?dryRun=All&fieldValidation=Strict`, credentials.server);
  return new Promise((resolve, reject) => {
    const sent = request(url, {
      method: "POST",
      agent,
      timeout: 60_000,
      headers: { ...headers, "content-type": "application/json", accept: "application/json" },
    });
    sent.on("timeout", () => sent.destroy(new Error(`no answer to a dry run at ${path}`)));
    sent.on("error", reject);
    sent.on("response", (answer) => {
      const parts: Buffer[] = [];
      answer.on("data", (part: Buffer) => parts.push(part));
      answer.on("error", reject);
      answer.on("end", () =>
        resolve({ status: answer.statusCode ?? 0, body: Buffer.concat(parts).toString("utf8") }),
      );
    });
    sent.end(text);
  });
}

/**
 * The part of an object that its writer and the defaults decide. Statuses are no part of a
 * creation.
 */
function comparable(object: Fields): Fields {
  const { apiVersion: _, status: __, metadata, ...fields } = object;
  const { name, labels, annotations, namespace } = metadata as Fields;
  return { ...fields, metadata: { name, labels, annotations, namespace } };
}

/**
 * Of Kubernetes' own kinds a part is known: that part must be the same, the server's own fields are
 * its business.
 */
function differs(
  mine: unknown,
  theirs: unknown,
  partly: boolean,
  at: readonly (string | number)[] = [],
): string | undefined {
  // Go does not write empty maps and lists of its own kinds, and of metadata, nor a port's empty
  // name.
  if (partly && at[at.length - 1] === "name" && !mine && !theirs) return undefined;
  if ((partly || at[0] === "metadata") && isEmpty(mine) && isEmpty(theirs)) return undefined;
  if (Array.isArray(mine) && Array.isArray(theirs) && mine.length === theirs.length) {
    return first(mine.keys(), (index) => differs(mine[index], theirs[index], partly, [...at, index]));
  }
  if (isFields(mine) && isFields(theirs)) {
    const names = new Set([...Object.keys(mine), ...(partly ? [] : Object.keys(theirs))]);
    return first(names, (name) => differs(mine[name], theirs[name], partly, [...at, name]));
  }
  if (isDeepStrictEqual(mine, theirs)) return undefined;
  return `${formatPath([...at])} is ${JSON.stringify(mine)} here and ${JSON.stringify(theirs)} there`;
}

function first<T>(values: Iterable<T>, ask: (value: T) => string | undefined): string | undefined {
  for (const value of values) {
    const answer = ask(value);
    if (answer !== undefined) return answer;
  }
  return undefined;
}

function isEmpty(value: unknown): boolean {
  return (
    value === undefined || value === null || (typeof value === "object" && Object.keys(value).length === 0)
  );
}

async function judge(document: Document): Promise<"accepted" | "refused" | Difference> {
  const mine = ours(document);
  const theirs = await servers(document);
  const difference = (what: string): Difference => ({
    kind: document.seed.kind.kind,
    what,
    document: document.text,
    ours: mine.object === undefined ? mine.why || "left out" : "accepted",
    server: theirs.object === undefined ? theirs.why : "accepted",
  });
  if (mine.object === undefined && theirs.object === undefined) return "refused";
  if (mine.object === undefined) return difference("refused here, accepted by the server");
  if (theirs.object === undefined) return difference("accepted here, refused by the server");
  const partly = document.seed.kind.finish !== undefined;
  const where = differs(comparable(mine.object), comparable(theirs.object), partly);
  return where === undefined ? "accepted" : difference(`not defaulted alike: ${where}`);
}

function documentsOf(count: number, seed: number): readonly Document[] {
  const seeds = readSeeds();
  const originals = seeds.map((each) => ({ seed: each, text: JSON.stringify(each.object) }));
  const valid = originals.filter((each) => ours(each).object !== undefined).map((each) => each.seed);
  const byKind = Map.groupBy(valid, ({ kind }) => kind.kind);
  const mutator = new Mutator(new Random(seed), valid);
  const random = new Random(seed + 1);
  const texts = new Map(originals.map((each) => [each.text, each]));
  // Every kind is as often broken as any other, however many documents of it there are.
  for (let tries = 0; texts.size < count && tries < 10 * count; tries++) {
    const one = random.of(byKind.get(random.of([...byKind.keys()])) ?? []);
    const text = mutator.mutate(one);
    texts.set(text, { seed: one, text });
  }
  return [...texts.values()];
}

async function compare(documents: readonly Document[]): Promise<Comparison> {
  const tally = { accepted: 0, refused: 0 };
  const intended: Record<string, number> = {};
  const kinds: Record<string, [number, number]> = {};
  const differences: Difference[] = [];
  const queue = [...documents];
  const work = async (): Promise<void> => {
    for (let document = queue.pop(); document !== undefined; document = queue.pop()) {
      const verdict = await judge(document);
      if (typeof verdict === "string") {
        tally[verdict]++;
        const counts = kinds[document.seed.kind.kind] ?? [0, 0];
        counts[verdict === "accepted" ? 0 : 1]++;
        kinds[document.seed.kind.kind] = counts;
        continue;
      }
      const reason = intendedDifference(verdict);
      if (reason === undefined) differences.push(verdict);
      else intended[reason] = (intended[reason] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, work));
  return { documents: documents.length, ...tally, intended, kinds, differences };
}

const { values } = parseArgs({
  options: {
    documents: { type: "string", default: "2500" },
    seed: { type: "string", default: "1713" },
  },
});
const result = await compare(documentsOf(Number(values.documents), Number(values.seed)));
process.stdout.write(`${JSON.stringify(result)}\n`);
(agent as Agent).destroy();
