/**
 * The controller's rights as the API server sees them. That each of them is also needed is told by
 * the audit log of a run under the chart's own role (audit-rights.ts).
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Bed, ok } from "../../tools/cluster/bed.ts";
import { CHART } from "../../tools/cluster/chart.ts";
import { expandRights, type PolicyRule, type RightScope, rightsOfRules, rightText } from "../chart/rights.ts";
import { eventually } from "./support/served-cluster.ts";

const OWN = "mergeway-system";
const ACCOUNT = `system:serviceaccount:${OWN}:mergeway`;

/** What every account may do: ask about itself. */
const EVERYBODY = /^\S+ create self(subject\w+)\.(authorization|authentication)\.k8s\.io$/;

let bed: Bed;

beforeAll(async () => {
  bed = await Bed.up("e2e-rbac");
  for (const name of [OWN, "gateways", "team-a", "other-team"])
    await ok(bed.kubectl(["create", "namespace", name]));
});

afterAll(async () => {
  await bed?.down();
});

async function install(...settings: readonly string[]): Promise<void> {
  await ok(bed.helm(["upgrade", "--install", "mergeway", CHART, "-n", OWN, ...settings]));
}

interface RulesReview {
  readonly status: { readonly incomplete: boolean; readonly resourceRules: readonly PolicyRule[] };
}

/** The rights that the API server finds for the account in a namespace, as text without a scope. */
async function rightsIn(namespace: string): Promise<readonly string[]> {
  const review = {
    apiVersion: "authorization.k8s.io/v1",
    kind: "SelfSubjectRulesReview",
    spec: { namespace },
  };
  const asked = bed.kubectl(["create", "-f", "-", "-o", "json", `--as=${ACCOUNT}`], JSON.stringify(review));
  const { status } = JSON.parse(await ok(asked)) as RulesReview;
  expect(status.incomplete).toBe(false);
  const texts = rightsOfRules("cluster", status.resourceRules).map(rightText);
  return sorted(texts.filter((text) => !EVERYBODY.test(text)));
}

/** The table's rights of some scopes, as text without a scope. */
function expected(...scopes: readonly RightScope[]): readonly string[] {
  const chosen = expandRights().filter(({ scope }) => scopes.includes(scope));
  return sorted(chosen.map((right) => rightText({ ...right, scope: "cluster" })));
}

function sorted(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)].sort();
}

async function may(
  verb: string,
  resource: string,
  namespace: string,
  ...flags: readonly string[]
): Promise<string> {
  const where = namespace === "" ? ["--all-namespaces"] : ["-n", namespace];
  const { out } = await bed.kubectl(["auth", "can-i", verb, resource, ...where, `--as=${ACCOUNT}`, ...flags]);
  return out.trim();
}

describe("a controller of all namespaces", () => {
  beforeAll(() => install());

  test("has the rights of the table in its own namespace", async () => {
    await eventually(async () => expect(await rightsIn(OWN)).toEqual(expected("cluster", "watched", "own")));
  });

  test("has no rights of its own namespace anywhere else", async () => {
    await eventually(async () =>
      expect(await rightsIn("other-team")).toEqual(expected("cluster", "watched")),
    );
  });

  test.each([
    ["get", "pods"],
    ["create", "pods"],
    ["create", "pods", "--subresource=exec"],
    ["get", "pods", "--subresource=log"],
    ["create", "secrets"],
    ["update", "secrets"],
    ["delete", "secrets"],
    ["create", "serviceaccounts", "--subresource=token"],
    ["create", "roles.rbac.authorization.k8s.io"],
    ["bind", "roles.rbac.authorization.k8s.io"],
    ["escalate", "roles.rbac.authorization.k8s.io"],
    ["impersonate", "serviceaccounts"],
    ["update", "gateways.gateway.networking.k8s.io"],
    ["patch", "listenersets.gateway.networking.k8s.io"],
    ["delete", "httproutes.gateway.networking.k8s.io"],
    ["patch", "gatewayparameters.mergeway.dev"],
    ["patch", "trafficpolicies.mergeway.dev"],
    ["delete", "clientpolicies.mergeway.dev"],
    ["get", "leases.coordination.k8s.io/mergeway"],
  ])("may not %s %s %s of others", async (verb, resource, ...flags) => {
    expect(await may(verb, resource, "other-team", ...flags)).toBe("no");
  });

  test("may read one Secret and one Lease of its own namespace by name, and replace no other", async () => {
    expect(await may("update", "leases.coordination.k8s.io/mergeway", OWN)).toBe("yes");
    expect(await may("update", "leases.coordination.k8s.io/other", OWN)).toBe("no");
    expect(await may("update", "secrets/mergeway-authority", OWN)).toBe("no");
    expect(await may("delete", "secrets/mergeway-authority", OWN)).toBe("no");
  });
});

describe("a controller of two namespaces", () => {
  beforeAll(() => install("--set=controller.watchNamespaces={gateways,team-a}"));

  /** Of Namespaces it may see the named ones only. */
  const seesNamespaces = (texts: readonly string[]): readonly string[] =>
    sorted(
      texts.flatMap((text) => (/ namespaces$/.test(text) ? [`${text} gateways`, `${text} team-a`] : [text])),
    );

  test("has the rights of the table in each of them", async () => {
    for (const namespace of ["gateways", "team-a"]) {
      await eventually(async () =>
        expect(await rightsIn(namespace)).toEqual(seesNamespaces(expected("cluster", "watched"))),
      );
    }
  });

  test("has only its own in its own namespace", async () => {
    await eventually(async () =>
      expect(await rightsIn(OWN)).toEqual(seesNamespaces(expected("cluster", "own"))),
    );
  });

  test("can do nothing anywhere else", async () => {
    await eventually(async () =>
      expect(await rightsIn("other-team")).toEqual(seesNamespaces(expected("cluster"))),
    );
    for (const verb of ["get", "list", "watch"]) {
      expect(await may(verb, "secrets", "other-team")).toBe("no");
      expect(await may(verb, "secrets", "")).toBe("no");
    }
    expect(await may("create", "deployments.apps", "other-team")).toBe("no");
  });

  test("may watch the namespaces that it was given by name, and not the list of all", async () => {
    const list = (...flags: readonly string[]): ReturnType<Bed["kubectl"]> =>
      bed.kubectl(["get", "namespaces", "-o", "name", `--as=${ACCOUNT}`, ...flags]);
    expect((await list("--field-selector=metadata.name=team-a")).out.trim()).toBe("namespace/team-a");
    expect((await list("--field-selector=metadata.name=other-team")).err).toContain("Forbidden");
    expect((await list()).err).toContain("Forbidden");
  });
});
