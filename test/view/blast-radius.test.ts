/** What a change would do is what it does; and trying it leaves no trace. */
import { readdirSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { type Key, keyOf } from "../../src/api/key.ts";
import type { Resource } from "../../src/api/resource.ts";
import { openManifests } from "../../src/cli/workspace/workspace.ts";
import { Engine } from "../../src/engine/engine.ts";
import type { BlastRadius } from "../../src/view/blast/blast-answer.ts";
import { blastRadius } from "../../src/view/blast/blast-radius.ts";
import { folder, ROOT } from "../cli/mergeway.ts";
import { readCase } from "../engine/case-file.ts";
import { TEST_SETTINGS } from "../engine/settings.ts";
import { setsManifest } from "../page/worlds.ts";

const CASES = new URL("../engine/cases/", import.meta.url);

function contentOf(engine: Engine): unknown {
  return [
    Object.fromEntries([...engine.verdicts()].sort(([a], [b]) => (a < b ? -1 : 1))),
    [...engine.plan()].sort((a, b) => (a.id < b.id ? -1 : 1)),
  ];
}

describe("trying a deletion", () => {
  test.each(readdirSync(CASES))("tells for every object of %s what doing it does, and undoes it", (file) => {
    const { resources } = readCase(new URL(file, CASES).pathname);
    const known = new Map<Key, Resource>(resources.map((resource) => [keyOf(resource), resource]));
    const engine = new Engine(TEST_SETTINGS);
    const changes = Array.from(known, ([key, resource]) => ({ key, resource }));
    engine.apply(changes);
    const before = contentOf(engine);
    for (const key of known.keys()) {
      const { verdicts } = engine.tryOut([{ key, resource: undefined }], known);
      expect(contentOf(engine)).toEqual(before);
      const other = new Engine(TEST_SETTINGS);
      other.apply(changes);
      const done = other.apply([{ key, resource: undefined }]);
      expect(verdicts).toEqual(done.verdicts);
    }
  });
});

async function twoTeams(of: string, more: object = {}): Promise<BlastRadius | string> {
  return blastRadius(await openManifests([`${ROOT}/examples/two-teams`]), { of, ...more });
}

const listener = (namespace: string, name: string, section: string): object => ({
  kind: "ListenerSet",
  namespace,
  name,
  section,
});

test("a set that goes hands its hostname to the next in line", async () => {
  const found = await twoTeams("ListenerSet/team-coffee/coffee");
  expect(found).toMatchObject({
    hostnames: [
      {
        port: 8080,
        hostname: "coffee.example.com",
        before: listener("team-coffee", "coffee", "http"),
        after: listener("team-zest", "zest", "http"),
      },
      { port: 8443, after: listener("team-zest", "zest", "https") },
    ],
    routes: [{ route: { namespace: "team-coffee", name: "coffee" }, before: 1, after: 0 }],
    totals: { hostnames: 2, listeners: 4 },
  });
});

test("a listener that is taken out concerns nobody else's names", async () => {
  const found = await twoTeams("ListenerSet/team-tea/tea#http");
  expect(found).toMatchObject({
    hostnames: [{ port: 8080, hostname: "tea.example.com", before: listener("team-tea", "tea", "http") }],
    totals: { hostnames: 1, listeners: 1 },
  });
});

test("a Service that goes is a problem of the routes that name it", async () => {
  const found = (await twoTeams("Service/team-tea/tea")) as BlastRadius;
  expect(found.hostnames).toEqual([]);
  expect(found.routes).toMatchObject([
    { route: { namespace: "team-tea", name: "tea" }, problems: [{ reason: "BackendNotFound" }] },
  ]);
});

test("an older set that is given another's hostname takes it", async () => {
  const text = setsManifest([
    { name: "old", created: "2026-01-01T00:00:00Z", hostnames: ["old.example.com"] },
    { name: "young", created: "2026-02-01T00:00:00Z", hostnames: ["young.example.com"] },
  ]);
  const workspace = await openManifests([folder({ "sets.yaml": text })]);
  const of = "ListenerSet/infra/old#l0";
  expect(blastRadius(workspace, { of, hostname: "young.example.com" })).toMatchObject({
    hostnames: [
      { hostname: "old.example.com", before: { name: "old" } },
      { hostname: "young.example.com", before: { name: "young" }, after: { name: "old" } },
    ],
    listeners: [{ listener: { name: "young" }, before: "serving", after: "conflicted" }],
  });
  expect(blastRadius(workspace, { of, hostname: "free.example.com" })).toMatchObject({
    hostnames: [
      { hostname: "free.example.com", after: { name: "old" } },
      { hostname: "old.example.com", before: { name: "old" } },
    ],
    listeners: [],
  });
});

test.each([
  ["ListenerSet/team-tea/none", {}, "there is no ListenerSet/team-tea/none"],
  ["ListenerSet/team-tea/tea#none", {}, "it has no listener none"],
  ["ListenerSet/team-tea/tea#http", { hostname: "*" }, "that is no hostname"],
  ["ListenerSet/team-tea/tea#http", { port: 0 }, "that is no port"],
  ["Namespace//team-tea", {}, "a Namespace may reach everything of a Gateway"],
  ["HTTPRoute/team-tea/tea#x", {}, "a HTTPRoute has no listeners"],
])("%s with %j cannot be asked: %s", async (of, more, why) => {
  expect(await twoTeams(of, more)).toBe(why);
});

test("a Gateway with thousands of sets is not tried", async () => {
  const sets = Array.from({ length: 501 }, (_, at) => ({
    name: `s${at}`,
    hostnames: [`s${at}.example.com`],
  }));
  const workspace = await openManifests([folder({ "sets.yaml": setsManifest(sets) })]);
  const before = workspace.engine.recomputed;
  expect(blastRadius(workspace, { of: "Gateway/infra/shared" })).toContain("more than 500 owners");
  expect(workspace.engine.recomputed).toBe(before);
});

test("what is tried costs what hangs on it, however many others there are", async () => {
  const costs = await Promise.all(
    [10, 300].map(async (count) => {
      const sets = Array.from({ length: count }, (_, at) => ({
        name: `s${at}`,
        hostnames: [`s${at}.example.com`],
      }));
      const workspace = await openManifests([folder({ "sets.yaml": setsManifest(sets) })]);
      const before = workspace.engine.recomputed;
      blastRadius(workspace, { of: "ListenerSet/infra/s5" });
      return workspace.engine.recomputed - before;
    }),
  );
  expect(costs[1]).toBeLessThanOrEqual((costs[0] ?? 0) * 1.2);
});
