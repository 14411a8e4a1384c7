import { readdirSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { type Key, keyOf } from "../../../src/api/key.ts";
import type { Resource } from "../../../src/api/resource.ts";
import { DEFAULT_CONTROLLER as CONTROLLER } from "../../../src/engine/foundation/settings.ts";
import type { Verdict } from "../../../src/engine/foundation/verdict.ts";
import type { ObjectVerdict } from "../../../src/engine/verdicts/verdicts.ts";
import { STATE_METRICS } from "../../../src/status/metrics/state-metric-table.ts";
import { type StateView, takeSnapshot } from "../../../src/status/metrics/state-snapshot.ts";
import { stateText } from "../../../src/status/metrics/state-text.ts";
import { renderStatus } from "../../../src/status/render.ts";
import { engineOf } from "../../engine/case-engine.ts";
import { readCase } from "../../engine/case-file.ts";
import { expectedSamples } from "./expected-samples.ts";
import { type ReadSample, readExposition, sampleText } from "./exposition-reader.ts";

const CASES = new URL("../../engine/cases/", import.meta.url);

async function textOf(view: StateView, most?: number): Promise<string> {
  return (await piecesOf(stateText(takeSnapshot(view, most)))).join("");
}

async function piecesOf(text: AsyncIterable<string>): Promise<readonly string[]> {
  const pieces: string[] = [];
  for await (const piece of text) pieces.push(piece);
  return pieces;
}

async function samplesOf(view: StateView, most?: number): Promise<readonly ReadSample[]> {
  return readExposition(await textOf(view, most));
}

function lines(samples: Iterable<ReadSample>): readonly string[] {
  return [...new Set(Array.from(samples, sampleText))].sort();
}

function viewOf(objects: readonly (readonly [Resource, ObjectVerdict])[]): StateView {
  return {
    controllerName: CONTROLLER,
    resources: new Map(objects.map(([resource]) => [keyOf(resource), resource])),
    verdicts: () => objects.map(([resource, verdict]) => [keyOf(resource), verdict] as const),
  };
}

function routeOf(name: string, fields: { hostnames?: string[]; created?: string } = {}): Resource {
  return {
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "HTTPRoute",
    metadata: {
      name,
      namespace: "team",
      ...(fields.created === undefined ? {} : { creationTimestamp: fields.created }),
    },
    spec: { hostnames: fields.hostnames ?? [] },
  };
}

const JUDGED: ObjectVerdict = { type: "route", generation: 1, parents: [] };

describe("metrics of the state of objects", () => {
  test.each(readdirSync(CASES).sort())("agree with the statuses of golden case %s", async (file) => {
    const golden = readCase(new URL(file, CASES).pathname);
    const engine = engineOf(golden);
    const resources = new Map<Key, Resource>(golden.resources.map((each) => [keyOf(each), each]));
    const view = { controllerName: CONTROLLER, resources, verdicts: () => engine.verdicts() };
    const expected = golden.resources.flatMap((resource) => {
      const verdict = engine.verdict(keyOf(resource));
      if (verdict === undefined || verdict.type === "policy") return [];
      if (verdict.type === "set" && verdict.orphan === true) return [];
      const options = { controllerName: CONTROLLER, now: "2026-01-01T00:00:00Z" };
      return expectedSamples(resource, renderStatus(resource, verdict, options));
    });
    const told = (await samplesOf(view)).filter(({ name }) => name.startsWith("gatewayapi_"));
    expect(lines(told)).toEqual(lines(expected));
    expect(told.length, "no sample twice").toBe(lines(told).length);
  });

  test("are those of the table, each once and with its labels alone", async () => {
    const golden = readCase(new URL("listenersets-merge-like-one-gateway.yaml", CASES).pathname);
    const engine = engineOf(golden);
    const resources = new Map(golden.resources.map((each) => [keyOf(each), each]));
    const text = await textOf({
      controllerName: CONTROLLER,
      resources,
      verdicts: () => engine.verdicts(),
    });
    const table = STATE_METRICS.flatMap(({ prefix, identity, families }) =>
      families.map(({ suffix, labels }) => [`${prefix}_${suffix}`, [...identity, ...labels]] as const),
    );
    const types = Array.from(text.matchAll(/^# TYPE (gatewayapi_\w+) gauge$/gm), ([, name]) => name);
    expect(types).toEqual(table.map(([name]) => name));
    const allowed = new Map<string, readonly string[]>(table);
    for (const { name, labels } of readExposition(text).filter(({ name: each }) => allowed.has(each)))
      expect(allowed.get(name), name).toEqual(expect.arrayContaining(Object.keys(labels)));
  });

  test("tell what statuses of GatewayClasses say beyond verdicts", async () => {
    const named: Resource = {
      apiVersion: "gateway.networking.k8s.io/v1",
      kind: "GatewayClass",
      metadata: { name: "public" },
      spec: { controllerName: CONTROLLER },
    };
    const accepted: Verdict = { type: "Accepted", status: "True", reason: "Accepted", message: "" };
    const samples = await samplesOf({
      ...viewOf([[named, { type: "class", generation: 1, conditions: [accepted] }]]),
      classes: {
        features: () => new Set(["Gateway", "HTTPRoute"]),
        installed: () => ({ bundleVersions: ["v1.7.0"], isKnown: true }),
      },
    });
    expect(lines(samples.filter(({ name }) => name === "gatewayapi_gatewayclass_status"))).toEqual([
      'gatewayapi_gatewayclass_status [["name","public"],["type","Accepted"]] 1',
      'gatewayapi_gatewayclass_status [["name","public"],["type","SupportedVersion"]] 1',
    ]);
    const features = samples.filter(
      ({ name }) => name === "gatewayapi_gatewayclass_status_supported_features",
    );
    expect(features.map(({ labels }) => labels["features"])).toEqual(["Gateway", "HTTPRoute"]);
  });

  test("no value of a label can end it or begin another sample", async () => {
    const hostname = 'a"} 1\nmergeway_leader{x="\\';
    const view = viewOf([[routeOf("odd", { hostnames: [hostname] }), JUDGED]]);
    const samples = (await samplesOf(view)).filter(
      ({ name }) => name === "gatewayapi_httproute_hostname_info",
    );
    expect(samples).toEqual([
      {
        name: "gatewayapi_httproute_hostname_info",
        labels: { namespace: "team", name: "odd", hostname },
        value: 1,
      },
    ]);
  });

  test("a hostname that a route lists twice is told once", async () => {
    const view = viewOf([[routeOf("twice", { hostnames: ["a.example", "a.example"] }), JUDGED]]);
    const text = await textOf(view);
    expect(text.match(/^gatewayapi_httproute_hostname_info\{/gm)).toHaveLength(1);
  });

  test("with too many objects of a kind the oldest are shown, and the others counted", async () => {
    const view = viewOf([
      [routeOf("newest", { created: "2026-03-01T00:00:00Z" }), JUDGED],
      [routeOf("oldest", { created: "2026-01-01T00:00:00Z" }), JUDGED],
      [routeOf("older", { created: "2026-02-01T00:00:00Z" }), JUDGED],
    ]);
    const samples = await samplesOf(view, 2);
    const created = samples.filter(({ name }) => name === "gatewayapi_httproute_created");
    expect(created.map(({ labels }) => labels["name"])).toEqual(["oldest", "older"]);
    expect(samples.filter(({ name }) => name === "mergeway_state_omitted_objects")).toEqual([
      { name: "mergeway_state_omitted_objects", labels: { kind: "HTTPRoute" }, value: 1 },
    ]);
  });

  test("a scrape shows one moment, and lets others work between its pieces", async () => {
    const objects = Array.from({ length: 5_000 }, (_, index) => {
      const created = "2026-01-01T00:00:00Z";
      return [routeOf(`route-${index}`, { created }), JUDGED] as [Resource, ObjectVerdict];
    });
    const pieces = stateText(takeSnapshot(viewOf(objects)));
    const first = await pieces.next();
    let turns = 0;
    const timer = setInterval(() => turns++, 0);
    objects.length = 0;
    const rest = await piecesOf(pieces);
    clearInterval(timer);
    for (const piece of rest) expect(piece.length).toBeLessThan(70_000);
    const text = [first.value, ...rest].join("");
    expect(text.match(/^gatewayapi_httproute_created\{/gm)).toHaveLength(5_000);
    expect(turns).toBeGreaterThan(0);
  });
});
