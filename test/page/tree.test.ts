import { expect, test } from "vitest";
import { SearchIndex } from "../../src/page/model/filter.ts";
import { rowText } from "../../src/page/model/row-text.ts";
import { summaryOf } from "../../src/page/model/summary.ts";
import { pathTo, treeRows } from "../../src/page/model/tree-rows.ts";
import { moveInTree } from "../../src/page/views/tree-keys.ts";
import { type Outline, outlineOf } from "../../src/view/outline.ts";
import { setsManifest, stateOfFiles, twoTeams } from "./worlds.ts";

const outline = await twoTeams();
const CLOSED = new Map<string, boolean>();
const ZEST = "owner:ListenerSet/team-zest/zest";
const CONFLICTED = "listener:ListenerSet/team-zest/zest#http";

function titles(world: Outline, search: string): readonly string[] {
  const filter = new SearchIndex(world).filter(search);
  return treeRows(world, CLOSED, filter).map(({ node, level }) => `${level} ${node.id}`);
}

test("a small world is open from the Gateway to the routes, in the order of precedence", () => {
  const rows = treeRows(outline, CLOSED);
  const owners = rows.filter(({ node }) => node.type === "owner").map(({ node }) => node.id);
  expect(owners).toEqual([
    "owner:Gateway/platform/shared",
    "owner:ListenerSet/team-coffee/coffee",
    "owner:ListenerSet/team-tea/tea",
    ZEST,
  ]);
  expect(new Set(rows.map(({ node }) => node.type))).toEqual(
    new Set(["gateway", "owner", "listener", "route"]),
  );
  expect(rows.map(({ node }) => node.id)).toHaveLength(new Set(rows.map(({ node }) => node.id)).size);
});

test("a large world shows its owners and nothing below them until it is opened", () => {
  const [gateway] = outline.gateways;
  if (gateway === undefined) throw new Error("no Gateway");
  const owners = Array.from({ length: 2_500 }, (_, index) => ({
    ...(gateway.owners[1] ?? gateway.owners[0]),
    name: `set-${index}`,
  }));
  const large = { ...outline, gateways: [{ ...gateway, owners }] } as Outline;
  expect(treeRows(large, CLOSED)).toHaveLength(2_501);
  expect(treeRows(large, new Map([["owner:ListenerSet/team-coffee/set-7", true]]))).toHaveLength(2_503);
});

test("what was closed by hand stays closed", () => {
  const rows = treeRows(outline, new Map([[ZEST, false]]));
  expect(rows.find(({ node }) => node.id === ZEST)).toMatchObject({ isOpen: false });
  expect(rows.some(({ node }) => node.id === CONFLICTED)).toBe(false);
});

test("a conflicted listener says the reason, the message and the holder", () => {
  const row = treeRows(outline, CLOSED).find(({ node }) => node.id === CONFLICTED);
  if (row === undefined) throw new Error("the conflicted listener is hidden");
  expect(rowText(row, outline, new Map())).toMatchObject({
    title: "coffee.example.com",
    state: { tone: "bad", text: "conflicted" },
    note: {
      text: expect.stringMatching(
        /^HostnameConflict: hostname coffee\.example\.com on port 8080 is already held/,
      ),
      holder: {
        node: "listener:ListenerSet/team-coffee/coffee#http",
        text: "ListenerSet team-coffee/coffee, listener http",
      },
    },
  });
});

test("a closed owner whose listeners are conflicted says so itself", () => {
  const row = treeRows(outline, new Map([[ZEST, false]])).find(({ node }) => node.id === ZEST);
  if (row === undefined) throw new Error("the owner is hidden");
  expect(rowText(row, outline, new Map())).toMatchObject({
    state: { tone: "bad", text: "0 of 2 serving" },
    note: { tone: "bad" },
  });
});

test("a search shows what has the words, and what leads there", () => {
  expect(titles(outline, "tea.example")).toEqual([
    "1 gateway:platform/shared",
    "2 owner:ListenerSet/team-tea/tea",
    "3 listener:ListenerSet/team-tea/tea#http",
    "4 listener:ListenerSet/team-tea/tea#http>HTTPRoute/team-tea/tea",
    "3 listener:ListenerSet/team-tea/tea#https",
    "4 listener:ListenerSet/team-tea/tea#https>HTTPRoute/team-tea/tea",
  ]);
});

test("a search finds states and reasons, several words, and upper case", () => {
  const found = titles(outline, "HostnameConflict :8443");
  expect(found).toContain("3 listener:ListenerSet/team-zest/zest#https");
  expect(found).not.toContain("3 listener:ListenerSet/team-zest/zest#http");
  expect(titles(outline, "no such thing")).toEqual([]);
});

test("prepared and unprepared indexes find the same", () => {
  const index = new SearchIndex(outline);
  index.prepare();
  for (const search of ["team", "coffee", "HTTPRoute", "conflicted", "shared", "9"]) {
    const filter = index.filter(search);
    expect(treeRows(outline, CLOSED, filter).map(({ node, level }) => `${level} ${node.id}`)).toEqual(
      titles(outline, search),
    );
  }
});

test("the path to a node is found from its id alone", () => {
  const id = `${CONFLICTED}>HTTPRoute/team-zest/zest`;
  expect(pathTo(outline, id)?.map((node) => node.id)).toEqual([
    "gateway:platform/shared",
    ZEST,
    CONFLICTED,
    id,
  ]);
  expect(pathTo(outline, "owner:ListenerSet/team-zest/gone")).toBeUndefined();
});

test("a policy whose target is not there is shown with its reason, and found", async () => {
  const policy = {
    apiVersion: "mergeway.dev/v1alpha1",
    kind: "TrafficPolicy",
    metadata: { name: "lost", namespace: "infra" },
    spec: {
      targetRefs: [{ kind: "ListenerSet", name: "nothing" }],
      defaults: { rateLimits: [{ requests: 1 }] },
    },
  };
  const files = { "all.yaml": setsManifest([]), "policy.yaml": JSON.stringify(policy) };
  const world = outlineOf(await stateOfFiles(files));
  const row = treeRows(world, CLOSED).find(({ node }) => node.type === "stray-policy");
  if (row === undefined) throw new Error("the policy is hidden");
  expect(rowText(row, world, new Map())).toMatchObject({
    title: "infra/lost",
    note: { text: expect.stringMatching(/^TargetNotFound: /) },
  });
  expect(titles(world, "lost").map((title) => title.slice(0, 8))).toEqual(["1 group:", "2 policy"]);
});

test("the summary counts every state", () => {
  expect(summaryOf(outline)).toMatchObject({
    gateways: 1,
    owners: 4,
    listeners: 8,
    states: { serving: 6, conflicted: 2, refused: 0 },
    routes: 4,
  });
});

test("arrow keys move as in any tree", () => {
  const rows = treeRows(outline, new Map([[ZEST, false]]));
  const at = rows.findIndex(({ node }) => node.id === ZEST);
  expect(moveInTree("ArrowDown", rows, -1, 10)).toEqual({ choose: rows[0]?.node.id });
  expect(moveInTree("ArrowRight", rows, at, 10)).toEqual({ open: true });
  expect(moveInTree("ArrowLeft", rows, at, 10)).toEqual({ choose: "gateway:platform/shared" });
  expect(moveInTree("ArrowRight", rows, 0, 10)).toEqual({ choose: rows[1]?.node.id });
  expect(moveInTree("ArrowLeft", rows, 0, 10)).toEqual({ open: false });
  expect(moveInTree("End", rows, 0, 10)).toEqual({ choose: ZEST });
  expect(moveInTree("PageDown", rows, 1, 3)).toEqual({ choose: rows[4]?.node.id });
  expect(moveInTree("Enter", rows, at, 10)).toEqual({ open: true });
  expect(moveInTree("x", rows, at, 10)).toBeUndefined();
});
