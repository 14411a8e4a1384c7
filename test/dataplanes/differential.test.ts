/**
 * What `explain` says and what a data plane does are the same, on random configurations and requests. DIFFERENTIAL=50000 for a long run.
 *
 * A data plane takes part with one line in CONTENDERS. Each serves all configurations one after the other, so its changes are tested as well.
 */

import * as fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { stringify } from "yaml";
import { admit } from "../../src/api/admission/admit.ts";
import { keyOf } from "../../src/api/key.ts";
import type { Resource } from "../../src/api/resource.ts";
import { createEmbeddedDataPlane } from "../../src/dataplanes/embedded/embedded-data-plane.ts";
import type { Explanation } from "../../src/matching/explanation.ts";
import { startBackends } from "./differential/backends.ts";
import type { Outcome } from "./differential/client.ts";
import { configuration, type Manifest } from "./differential/configurations.ts";
import { Contender, type Resources } from "./differential/contender.ts";
import { expectedOutcomes, fits } from "./differential/expectation.ts";
import { foundation, makeKeys } from "./differential/foundation.ts";
import { aimed, type WireRequest, wireRequest } from "./differential/requests.ts";
import { Backends } from "./http-peers.ts";
import type { CreateDataPlane } from "./plane-under-test.ts";

const RUNS = Number(process.env["DIFFERENTIAL"] ?? 2_000);
const REQUESTS = 5;

const CONTENDERS: readonly (readonly [name: string, create: CreateDataPlane])[] = [
  ["embedded", (options) => createEmbeddedDataPlane({ ...options, workers: 0 })],
];

const backends = new Backends();
const contenders: Contender[] = [];
const keys = makeKeys();
let ground: Resources;

beforeAll(async () => {
  ground = admitted(foundation(keys, await startBackends(backends, keys.server)), new Map());
  for (const [name, create] of CONTENDERS) contenders.push(await Contender.start(name, create, keys.client));
});

afterAll(async () => {
  for (const contender of contenders) await contender.close();
  await backends.release();
});

test(
  "explain and the data planes agree",
  async () => {
    const seen = new Map<string, number>();
    const result = await fc.check(
      fc.asyncProperty(
        configuration,
        fc.array(wireRequest, { minLength: REQUESTS, maxLength: REQUESTS }),
        async (manifests, requests) => {
          const resources = admitted(manifests, ground);
          for (const contender of contenders)
            await compare(
              contender,
              resources,
              requests.map((request) => aimed(request, manifests)),
              seen,
            );
        },
      ),
      { numRuns: RUNS },
    );
    if (result.failed) {
      const reason = result.errorInstance instanceof Error ? result.errorInstance.message : "";
      const [manifests = [], requests = []] = result.counterexample ?? [];
      const again = await agreeAfresh(manifests, requests);
      const history = again ? "only after the configurations before it" : "also on fresh data planes";
      throw new Error(`${reason}\n\nSeed ${result.seed}, ${history}:\n\n${told(manifests)}`);
    }
    // Without these the agreement would be about little.
    for (const kind of KINDS) expect(seen.get(kind) ?? 0, kind).toBeGreaterThan(RUNS / 40);
  },
  60_000 + RUNS * 100,
);

const KINDS = ["forward", "split", "redirect", "refuse", "404", "421", "500", "503"] as const;

async function compare(
  contender: Contender,
  resources: Resources,
  requests: readonly WireRequest[],
  seen: Map<string, number>,
): Promise<void> {
  await contender.become(resources);
  const outcomes = await Promise.all(requests.map((request) => contender.send(request)));
  for (const [at, request] of requests.entries()) {
    const explanation = contender.explain(request);
    const expected = expectedOutcomes(explanation, request.grpc);
    const actual = outcomes[at] as Outcome;
    const kind = kindOf(explanation);
    seen.set(kind, (seen.get(kind) ?? 0) + 1);
    if (fits(expected, actual)) continue;
    throw new Error(disagreement(contender.name, request, { explanation, expected, actual }));
  }
}

/** Whether data planes that have served nothing else get it right. */
async function agreeAfresh(
  manifests: readonly Manifest[],
  requests: readonly WireRequest[],
): Promise<boolean> {
  for (const [name, create] of CONTENDERS) {
    const contender = await Contender.start(name, create, keys.client);
    const asked = requests.map((request) => aimed(request, manifests));
    try {
      await compare(contender, admitted(manifests, ground), asked, new Map());
    } catch {
      return false;
    } finally {
      await contender.close();
    }
  }
  return true;
}

function kindOf({ outcome, status, location, backends: shares }: Explanation): string {
  if (location !== undefined) return "redirect";
  if (outcome === "forward") return shares.filter(({ share }) => share > 0).length > 1 ? "split" : "forward";
  return outcome === "refuse" ? "refuse" : String(status);
}

/** What admission lets through, over what is always there; of several objects with one name the last counts. */
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
