import { expect, test } from "vitest";
import { quotaRows } from "../../src/page/model/quotas.ts";
import { type OutlineGateway, outlineOf } from "../../src/view/outline.ts";
import { setsManifest, stateOfFiles } from "./worlds.ts";

const GATEWAY = {
  group: "gateway.networking.k8s.io",
  kind: "Gateway",
  name: "shared",
  namespace: "infra",
} as const;

/** Of a namespace with as many listeners as asked for, each for a hostname of its own. */
function team(namespace: string, listeners: number): readonly object[] {
  return [
    { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } },
    {
      apiVersion: "gateway.networking.k8s.io/v1",
      kind: "ListenerSet",
      metadata: { namespace, name: "set" },
      spec: {
        parentRef: GATEWAY,
        listeners: Array.from({ length: listeners }, (_, index) => ({
          name: `l${index}`,
          port: 80,
          protocol: "HTTP",
          hostname: `l${index}.${namespace}.test`,
        })),
      },
    },
  ];
}

async function gatewayWith(...objects: readonly object[]): Promise<OutlineGateway> {
  const teams = objects.map((object) => JSON.stringify(object)).join("\n---\n");
  const state = await stateOfFiles({ "gateway.yaml": setsManifest([]), "teams.yaml": teams });
  const [gateway] = outlineOf(state).gateways;
  if (gateway === undefined) throw new Error("there is no Gateway");
  return gateway;
}

const POLICY = {
  apiVersion: "mergeway.dev/v1alpha1",
  kind: "TenantPolicy",
  metadata: { namespace: "infra", name: "tenants" },
  spec: {
    targetRefs: [{ group: GATEWAY.group, kind: "Gateway", name: "shared" }],
    rules: [{ name: "all", namespaceSelector: {}, hostnames: { allow: ["*"] }, quota: { listeners: 10 } }],
  },
};

test("namespaces that are beyond a limit come first, then those near it, then the others by name", async () => {
  const teams = [...team("a", 1), ...team("b", 9), ...team("c", 12), ...team("d", 1)];
  const rows = quotaRows(await gatewayWith(POLICY, ...teams));
  const shown = rows.filter(({ namespace }) => namespace !== "infra");
  expect(shown).toEqual([
    { namespace: "c", rule: "all", uses: [{ text: "listeners 12 of 10", tone: "bad" }] },
    { namespace: "b", rule: "all", uses: [{ text: "listeners 9 of 10", tone: "warn" }] },
    { namespace: "a", rule: "all", uses: [{ text: "listeners 1 of 10", tone: "quiet" }] },
    { namespace: "d", rule: "all", uses: [{ text: "listeners 1 of 10", tone: "quiet" }] },
  ]);
});

test("a set is shown the quota of its own namespace alone", async () => {
  const gateway = await gatewayWith(POLICY, ...team("a", 1), ...team("b", 9));
  expect(quotaRows(gateway, "b").map(({ namespace }) => namespace)).toEqual(["b"]);
});

test("without a TenantPolicy there is nothing to show", async () => {
  expect(quotaRows(await gatewayWith(...team("a", 1)))).toEqual([]);
});
