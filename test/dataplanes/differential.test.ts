/**
 * What `explain` says and what a data plane does are the same, on random configurations and
 * requests. DIFFERENTIAL=50000 for a long run, of Envoy as well.
 *
 * A data plane takes part with one line in CONTENDERS. Each serves all configurations one after the
 * other, so its changes are tested as well; all begin with the same ones.
 */

import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { stringify } from "yaml";
import { admit } from "../../src/api/admission/admit.ts";
import { keyOf } from "../../src/api/key.ts";
import type { Resource } from "../../src/api/resource.ts";
import { createEmbeddedDataPlane } from "../../src/dataplanes/embedded/embedded-data-plane.ts";
import type { Explanation } from "../../src/matching/explain/explanation.ts";
import { chosenSeed } from "../support/seed.ts";
import { startBackends } from "./differential/backends.ts";
import type { Outcome } from "./differential/client.ts";
import { configuration, type Manifest } from "./differential/configurations.ts";
import { Contender, type Entry, type Resources } from "./differential/contender.ts";
import { expectedOutcomes, fits, ownAnswer, withHostAsWritten } from "./differential/expectation.ts";
import { foundation, makeKeys } from "./differential/foundation.ts";
import { aimed, type WireRequest, wireRequest } from "./differential/requests.ts";
import { createEnvoy } from "./support/envoy-plane.ts";
import { Backends } from "./support/http-peers.ts";

const WANTED = process.env["DIFFERENTIAL"];
const SEED = Number(process.env["DIFFERENTIAL_SEED"] ?? chosenSeed());
const REQUESTS = 5;

const CONTENDERS: readonly Entry[] = [
  {
    name: "embedded",
    create: (options) => createEmbeddedDataPlane({ ...options, workers: 0 }),
    runs: 2_000,
    endsIdle: true,
    redirectsGrpc: true,
    namesByPort: true,
    raisesEscapes: true,
    writesHosts: true,
  },
  {
    name: "Envoy",
    create: (options) => createEnvoy(options),
    // Another process takes longer to take a configuration.
    runs: 300,
    // Connections to a port that goes stay until the drain time is over, and get 404.
    endsIdle: false,
    // Whatever Envoy answers by itself it puts in gRPC's words, where that is what the client
    // speaks.
    redirectsGrpc: false,
    // Certificates are asked for by server name alone.
    namesByPort: false,
    // Both are the same to RFC 3986.
    raisesEscapes: false,
    // It knows no other name for a wildcard's host.
    writesHosts: false,
  },
];

const backends = new Backends();
const keys = makeKeys();
let ground: Resources;

beforeAll(async () => {
  ground = admitted(foundation(keys, await startBackends(backends, keys.server)), new Map());
});

afterAll(() => backends.release());

describe.each(CONTENDERS)("$name", (entry) => {
  const runs = Number(WANTED ?? entry.runs);

  test("agrees with explain", { timeout: 60_000 + runs * 1_000 }, async () => {
    const contender = await Contender.start(entry, keys.client);
    onTestFinished(() => contender.close());
    const seen = new Map<string, number>();
    const tooFew = (): readonly string[] => KINDS.filter((kind) => (seen.get(kind) ?? 0) <= runs / 40);
    // Where chance has left out a kind of answer, there is more.
    for (let batch = 0; batch < MOST_BATCHES && (batch === 0 || tooFew().length > 0); batch++) {
      const result = await fc.check(
        fc.asyncProperty(
          configuration,
          fc.array(wireRequest, { minLength: REQUESTS, maxLength: REQUESTS }),
          async (manifests, requests) => {
            const resources = admitted(manifests, ground);
            const asked = requests.map((request) => aimed(request, manifests));
            await compare(contender, resources, asked, seen);
          },
        ),
        { numRuns: runs, seed: SEED + batch },
      );
      if (result.failed) {
        const reason = result.errorInstance instanceof Error ? result.errorInstance.message : "";
        const [manifests = [], requests = []] = result.counterexample ?? [];
        const again = await agreeAfresh(entry, manifests, requests);
        const history = again ? "only after the configurations before it" : "also on a fresh data plane";
        throw new Error(`${reason}\n\nSeed ${result.seed}, ${history}:\n\n${told(manifests)}`);
      }
    }
    // Without these the agreement would be about little.
    expect(tooFew()).toEqual([]);
  });
});

const MOST_BATCHES = 3;
const KINDS = ["forward", "split", "redirect", "refuse", "404", "421", "500", "503"] as const;

async function compare(
  contender: Contender,
  resources: Resources,
  requests: readonly WireRequest[],
  seen: Map<string, number>,
): Promise<void> {
  const { name, redirectsGrpc, namesByPort, writesHosts } = contender.entry;
  await contender.become(resources);
  const outcomes = await Promise.all(requests.map((request) => contender.send(request)));
  for (const [at, request] of requests.entries()) {
    const explanation = contender.explain(request);
    const elsewhere = !namesByPort && contender.isForAnotherPort(request);
    const expected = [
      ...expectedOutcomes(explanation, { grpc: request.grpc, redirectsGrpc }),
      ...(writesHosts ? [] : withHostAsWritten(explanation, request)),
      ...(elsewhere ? [404, 421].map((status) => ownAnswer(status, request.grpc)) : []),
    ];
    const actual = outcomes[at] as Outcome;
    const kind = kindOf(explanation);
    seen.set(kind, (seen.get(kind) ?? 0) + 1);
    if (fits(expected, actual)) continue;
    throw new Error(disagreement(name, request, { explanation, expected, actual }));
  }
}

/** Whether a data plane that has served nothing else gets it right. */
async function agreeAfresh(
  entry: Entry,
  manifests: readonly Manifest[],
  requests: readonly WireRequest[],
): Promise<boolean> {
  const contender = await Contender.start(entry, keys.client);
  const asked = requests.map((request) => aimed(request, manifests));
  try {
    await compare(contender, admitted(manifests, ground), asked, new Map());
    return true;
  } catch {
    return false;
  } finally {
    await contender.close();
  }
}

function kindOf({ outcome, status, location, backends: shares }: Explanation): string {
  if (location !== undefined) return "redirect";
  if (outcome === "forward") return shares.filter(({ share }) => share > 0).length > 1 ? "split" : "forward";
  return outcome === "refuse" ? "refuse" : String(status);
}

/**
 * What admission lets through, over what is always there; of several objects with one name the last
 * counts.
 */
function admitted(manifests: readonly Manifest[], before: Resources): Resources {
  const resources = new Map<string, Resource>(before);
  for (const manifest of manifests) {
    const { resource, errors } = admit(manifest);
    if (resource !== undefined) resources.set(keyOf(resource), resource);
    else expect(errors, "a refusal gives its reasons").not.toHaveLength(0);
  }
  return resources;
}

function disagreement(
  name: string,
  request: WireRequest,
  parts: {
    readonly explanation: Explanation;
    readonly expected: readonly Outcome[];
    readonly actual: Outcome;
  },
): string {
  return [
    `explain and ${name} disagree`,
    `request: ${JSON.stringify(request)}`,
    `explain leaves: ${JSON.stringify(parts.expected)}`,
    ...parts.explanation.steps.map(({ at, text }) => `  ${at}: ${text}`),
    `${name} gives: ${JSON.stringify(parts.actual)}`,
  ].join("\n");
}

function told(manifests: readonly Manifest[]): string {
  return manifests.map((manifest) => stringify(manifest, { lineWidth: 0 })).join("---\n");
}
