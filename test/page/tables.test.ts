import { expect, test } from "vitest";
import { certificateRows, findCertificates, renewalUrgencyOf } from "../../src/page/model/certificates.ts";
import { findChanges, KEPT_CHANGES, withChange } from "../../src/page/model/changes.ts";
import { findHostnames, portTables, ruleText } from "../../src/page/model/hostnames.ts";
import { ratesBetween, sumOf } from "../../src/page/model/traffic.ts";
import { type Outline, outlineOf } from "../../src/view/outline.ts";
import { setsManifest, stateOfFiles, twoTeams } from "./worlds.ts";

async function outlineOfSets(...given: Parameters<typeof setsManifest>): Promise<Outline> {
  return outlineOf(await stateOfFiles({ "all.yaml": setsManifest(...given) }));
}

async function ruleFor(...given: Parameters<typeof setsManifest>): Promise<string | undefined> {
  const rows = portTables(await outlineOfSets(...given)).flatMap((table) => table.rows);
  const loser = rows.find(({ hostname }) => hostname === "a.example.com")?.others[0];
  return loser && ruleText(loser.listener);
}

test("the table of a port names the holder, the others and the rule that decided", async () => {
  const [http] = portTables(await twoTeams());
  const row = http?.rows.find(({ hostname }) => hostname === "coffee.example.com");
  expect(row?.holder?.owner).toMatchObject({ namespace: "team-coffee", precedence: 2 });
  expect(row?.others.map(({ owner, listener }) => [owner.name, listener.state, ruleText(listener)])).toEqual([
    ["zest", "conflicted", "same age: first in the alphabet by namespace/name"],
  ]);
  expect(row?.coveredBy).toEqual([""]);
});

test("every clause of the order of precedence has its sentence", async () => {
  const hostnames = ["a.example.com"];
  expect(await ruleFor([{ name: "a", hostnames }], hostnames)).toContain("Gateway’s own");
  const young = { name: "a", created: "2026-02-01T00:00:00Z", hostnames };
  const old = { name: "b", created: "2026-01-01T00:00:00Z", hostnames };
  expect(await ruleFor([young, old])).toContain("older");
  expect(
    await ruleFor([
      { name: "a", hostnames },
      { name: "b", hostnames },
    ]),
  ).toContain("first in the alphabet");
});

test("wildcards that also match a hostname are listed, the narrowest first", async () => {
  const hostnames = ["x.a.example.com", "*.a.example.com", "*.example.com", ""];
  const [table] = portTables(await outlineOfSets([{ name: "a", hostnames }]));
  expect(table?.rows.map(({ hostname, coveredBy }) => [hostname, coveredBy])).toEqual([
    ["", []],
    ["*.example.com", [""]],
    ["*.a.example.com", ["*.example.com", ""]],
    ["x.a.example.com", ["*.a.example.com", "*.example.com", ""]],
    ["platform.example.com", ["*.example.com", ""]],
  ]);
});

test("hostnames are found by hostname, owner and state", async () => {
  const tables = portTables(await twoTeams());
  const found = (search: string): readonly string[] =>
    findHostnames(tables, search).flatMap(({ rows }) =>
      rows.map(({ hostname, port }) => `${hostname}:${port}`),
    );
  expect(found("zest 8443")).toEqual(["coffee.example.com:8443"]);
  expect(found("conflicted")).toHaveLength(2);
  expect(found("tea/tea")).toEqual(["tea.example.com:8080", "tea.example.com:8443"]);
});

test("certificates that end or do not fit come first", async () => {
  const outline = await twoTeams();
  const end = Date.parse(certificateRows(outline, 0)[0]?.notAfter ?? "");
  const day = 86_400_000;
  expect(certificateRows(outline, end - 100 * day).map(renewalUrgencyOf)).toEqual([
    "good",
    "good",
    "good",
    "good",
  ]);
  expect(certificateRows(outline, end - 10 * day).map(renewalUrgencyOf)).toContain("soon");
  expect(certificateRows(outline, end + day).map(renewalUrgencyOf)).toContain("bad");
  const [first, ...others] = outline.gateways[0]?.owners ?? [];
  if (first === undefined || outline.gateways[0] === undefined) throw new Error("no owner");
  const listeners = first.listeners.map((listener) => ({
    ...listener,
    certificates: listener.certificates.map((certificate) => ({ ...certificate, isForHostname: false })),
  }));
  const gateways = [{ ...outline.gateways[0], owners: [...others, { ...first, listeners }] }];
  const rows = certificateRows({ ...outline, gateways }, end - 100 * day);
  expect(rows[0]).toMatchObject({ secret: "platform/platform-cert" });
  expect(rows.map(renewalUrgencyOf)).toEqual(["bad", "good", "good", "good"]);
  expect(findCertificates(rows, "tea.example").map(({ secret }) => secret)).toEqual(["team-tea/tea-cert"]);
});

test("a certificate for another name is not for the hostname of its listener", async () => {
  const state = await stateOfFiles({ "all.yaml": setsManifest([]) });
  const [gateway] = state.gateways;
  const [owner] = gateway?.owners ?? [];
  const [listener] = owner?.listeners ?? [];
  if (gateway === undefined || owner === undefined || listener === undefined) throw new Error("no listener");
  const fits = (hostname: string, name: string): boolean | undefined => {
    const certificates = [{ secret: "a/b", names: [name], notAfter: "2030-01-01T00:00:00Z" }];
    const owners = [{ ...owner, listeners: [{ ...listener, hostname, certificates }] }];
    const outline = outlineOf({ ...state, gateways: [{ ...gateway, owners }] });
    return outline.gateways[0]?.owners[0]?.listeners[0]?.certificates[0]?.isForHostname;
  };
  expect(fits("a.example.com", "a.example.com")).toBe(true);
  expect(fits("a.example.com", "*.example.com")).toBe(true);
  expect(fits("a.b.example.com", "*.example.com")).toBe(false);
  expect(fits("a.example.com", "b.example.com")).toBe(false);
  expect(fits("", "b.example.com")).toBe(true);
});

test("an outline holds a route of two listeners once, and every route of the state", async () => {
  const outline = await twoTeams();
  expect(outline.routes.map(({ namespace, name }) => `${namespace}/${name}`)).toContain("team-coffee/coffee");
  const coffee = outline.gateways[0]?.owners.find(({ name }) => name === "coffee");
  const names = coffee?.listeners.flatMap(({ routes }) => routes.map((index) => outline.routes[index]?.name));
  expect(names).toEqual(["coffee", "coffee"]);
  expect(new Set(coffee?.listeners.flatMap(({ routes }) => routes)).size).toBe(1);
  expect(
    outline.routes.flatMap(({ backends }) => backends).every(({ backend }) => outline.backends[backend]),
  ).toBe(true);
});

test("the timeline is bounded, newest first, and leaves out what only waits", () => {
  const listener = { kind: "ListenerSet", namespace: "a", name: "b", section: "c" };
  const change = {
    type: "listener",
    listener,
    port: 80,
    protocol: "HTTP",
    hostname: "",
    at: "2026-01-01T00:00:00Z",
  } as const;
  let rows = withChange([], 1, { ...change, now: "waiting" });
  expect(rows).toEqual([]);
  for (let id = 1; id <= KEPT_CHANGES + 5; id++) rows = withChange(rows, id, { ...change, now: "serving" });
  expect(rows).toHaveLength(KEPT_CHANGES);
  expect(rows[0]).toMatchObject({ id: KEPT_CHANGES + 5, tone: "good", node: "listener:ListenerSet/a/b#c" });
  expect(findChanges(rows, "conflicted")).toEqual([]);
});

test("rates come from two readings, and a process that began anew gives none below 0", () => {
  const reading = (at: number, requests: number, errors = 0) => ({
    at,
    items: [{ listener: "a", requests, errors }],
  });
  expect(ratesBetween(undefined, reading(0, 5)).size).toBe(0);
  const rates = ratesBetween(reading(0, 10, 1), reading(2_000, 30, 2));
  expect(rates.get("a")).toEqual({ requests: 10, errors: 0.5 });
  expect(sumOf(rates, ["a", "b"])).toEqual({ requests: 10, errors: 0.5 });
  expect(ratesBetween(reading(0, 10), reading(1_000, 3)).size).toBe(0);
});
