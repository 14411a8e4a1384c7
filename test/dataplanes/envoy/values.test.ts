/**
 * Whatever our checks let through, a real Envoy takes: generated values for every field of a route
 * that ends in Envoy's configuration.
 */

import * as fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { admit } from "../../../src/api/admission/admit.ts";
import { keyOf } from "../../../src/api/key.ts";
import type { Resource } from "../../../src/api/resource.ts";
import { standaloneSettings } from "../../../src/cli/workspace/engine-settings.ts";
import { envoyFeatures } from "../../../src/dataplanes/envoy/features.ts";
import { Engine } from "../../../src/engine/engine.ts";
import type { PlanItem } from "../../../src/plan/plan.ts";
import { authority, issue } from "../support/certificates.ts";
import { createEnvoy } from "../support/envoy-plane.ts";
import { PlaneUnderTest } from "../support/plane-under-test.ts";
import { backendCases, backendManifests } from "./values/backend-cases.ts";
import { cases, type ValueCase } from "./values/cases.ts";
import { listenerCases, listenerManifests } from "./values/listener-cases.ts";
import { type Manifest, type RouteManifest, unadmitted } from "./values/unadmitted.ts";

const COUNT = Number(process.env["ENVOY_VALUES"] ?? 6_000);
const SEED = Number(process.env["ENVOY_VALUES_SEED"] ?? 20_260_801);
const BACKENDS = Math.ceil(COUNT / 10);
const LISTENERS = Math.ceil(COUNT / 20);
const API = "gateway.networking.k8s.io/v1";

const foundation: readonly Manifest[] = [
  { apiVersion: "v1", kind: "Namespace", metadata: { name: "apps" } },
  {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "svc", namespace: "apps" },
    spec: { ports: [{ port: 80, protocol: "TCP" }] },
  },
  {
    apiVersion: API,
    kind: "Gateway",
    metadata: { name: "edge", namespace: "apps" },
    spec: {
      gatewayClassName: "any",
      allowedListeners: { namespaces: { from: "All" } },
      listeners: [{ name: "http", port: 80, protocol: "HTTP" }],
    },
  },
];

function routeOf({ kind, rule }: ValueCase, at: number): RouteManifest {
  return {
    apiVersion: API,
    kind,
    metadata: { name: `case-${at}`, namespace: "apps" },
    spec: { parentRefs: [{ name: "edge" }], hostnames: [`case-${at}.example`], rules: [rule] },
  };
}

/** As either channel's schema lets it in, or as it would be without any. */
function read(route: RouteManifest): Resource {
  const admitted = admit(route, { channel: "standard" }).resource ?? admit(route).resource;
  return admitted ?? (unadmitted(route) as unknown as Resource);
}

const planes: PlaneUnderTest[] = [];
afterAll(() => Promise.all(planes.map((plane) => plane.close())));

/**
 * What Envoy refuses of what the engine makes of these, each with the number of its case; and what
 * it was given.
 */
async function refusalsOf(resources: readonly Resource[]): Promise<{
  readonly refusals: readonly (readonly [number, string])[];
  readonly items: readonly PlanItem[];
}> {
  const engine = new Engine(standaloneSettings({ features: envoyFeatures, assumeProgrammed: true }));
  const base = foundation.flatMap((each) => admit(each).resource ?? []);
  engine.apply([...base, ...resources].map((resource) => ({ key: keyOf(resource), resource })));
  const items = [...engine.plan()];
  const lines: string[] = [];
  planes.push(
    await PlaneUnderTest.start(
      (options) => createEnvoy(options, { onDebug: (line) => lines.push(line) }),
      items,
    ),
  );
  return {
    refusals: lines.map((line) => [Number(/case-(\d+)/.exec(line)?.[1]), line.slice(-200)] as const),
    items,
  };
}

test(`Envoy takes whatever the engine lets through of ${COUNT} rules with generated values`, async () => {
  const generated = fc.sample(cases, { numRuns: COUNT, seed: SEED });
  const { refusals, items } = await refusalsOf(generated.map((each, at) => read(routeOf(each, at))));
  const offenders = refusals.map(([at, line]) => {
    const { field, rule } = generated[at] ?? {};
    return `${field} ${JSON.stringify(rule)?.slice(0, 300)}: ${line}`;
  });
  expect(offenders).toEqual([]);
  // Not because nothing is let through.
  const served = items.filter((item) => item.type === "host" && item.rules.length > 0);
  expect(served.length).toBeGreaterThan(COUNT / 4);
}, 600_000);

test(`Envoy takes whatever the engine lets through of ${BACKENDS} backends with generated policies and endpoints`, async () => {
  const generated = fc.sample(backendCases, { numRuns: BACKENDS, seed: SEED });
  // Without admission: what an older version of the API lets in.
  const resources = generated.flatMap((each, at) => backendManifests(each, at)) as unknown as Resource[];
  const { refusals, items } = await refusalsOf(resources);
  const offenders = refusals.map(([at, line]) => `${JSON.stringify(generated[at]).slice(0, 600)}: ${line}`);
  expect(offenders).toEqual([]);
  const served = items.filter((item) => item.type === "backend" && item.refused === undefined);
  expect(served.length).toBeGreaterThan(BACKENDS / 10);
}, 600_000);

test(`Envoy takes whatever the engine lets through of ${LISTENERS} listeners with generated hostnames, options and weights`, async () => {
  const generated = fc.sample(listenerCases, { numRuns: LISTENERS, seed: SEED });
  const pair = issue(authority(), ["*.example"]);
  const secret = {
    apiVersion: "v1",
    kind: "Secret",
    type: "kubernetes.io/tls",
    metadata: { name: "pair", namespace: "apps" },
    data: { "tls.crt": base64(pair.cert), "tls.key": base64(pair.key) },
  };
  const manifests = [secret, ...generated.flatMap((each, at) => listenerManifests(each, at))];
  const { refusals, items } = await refusalsOf(manifests as unknown as Resource[]);
  expect(refusals).toEqual([]);
  const served = items.filter((item) => item.type === "listener");
  expect(served.length).toBeGreaterThan(LISTENERS / 10);
}, 600_000);

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}
