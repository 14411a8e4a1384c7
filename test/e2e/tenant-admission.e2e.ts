/**
 * TenantPolicies at admission, as the chart installs them, at a real API server: it refuses what
 * the engine refuses, at a bounded price.
 */
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { Bed, ok } from "../../tools/cluster/bed.ts";
import { CHART, CRD_FOLDER } from "../../tools/cluster/chart.ts";
import type { ClaimHistory } from "./tenant-admission/claims.ts";
import type { TenantComparison } from "./tenant-admission/compare.ts";
import type { Cost } from "./tenant-admission/cost.ts";

const OBJECTS = 3000;
const WAIT = { timeout: 30_000, interval: 200 };

let bed: Bed;

beforeAll(async () => {
  bed = await Bed.up("e2e-tenant-admission", ["experimental", "xlistenerset"]);
  await ok(bed.kubectl(["apply", "--server-side", "-f", CRD_FOLDER]));
  await ok(
    bed.kubectl([
      "wait",
      "crd/tenantpolicies.mergeway.dev",
      "crd/hostnameclaims.mergeway.dev",
      "--for=condition=Established",
    ]),
  );
  for (const namespace of ["gateways", "shop"]) await ok(bed.kubectl(["create", "namespace", namespace]));
  const values = [
    "admission.enabled=true",
    "admission.namespaces={gateways}",
    "admission.failurePolicy=Fail",
    "admission.claims=true",
  ];
  const show = ["--show-only", "templates/tenantadmission.yaml"];
  const rendered = await ok(
    bed.helm(["template", "mergeway", CHART, ...show, ...values.flatMap((each) => ["--set", each])]),
  );
  await ok(bed.kubectl(["apply", "-f", "-"], rendered));
});

afterAll(async () => {
  await bed?.down();
});

async function program<T>(name: string, ...args: readonly string[]): Promise<T> {
  const file = fileURLToPath(new URL(`tenant-admission/${name}.ts`, import.meta.url));
  return JSON.parse(await ok(bed.run([process.execPath, file, ...args]))) as T;
}

test("objects are admitted under up to 1,000 rules, and what that costs is told", async () => {
  const costs = await program<readonly Cost[]>("cost");
  for (const { rules, claims = 0, milliseconds } of costs)
    console.log(`${milliseconds.toFixed(2)} ms for a ListenerSet under ${rules} rules, ${claims} claims`);
  expect(costs.map(({ rules, claims }) => claims ?? rules)).toEqual([1, 10, 100, 1_000, 1, 12]);
});

test("what admission lets in the engine serves, and the other way round", async () => {
  const { differences, kinds, reasons, leftToTheEngine } = await program<TenantComparison>(
    "compare",
    ...["--objects", String(OBJECTS)],
  );
  console.log(`${leftToTheEngine} routes that only the engine can judge; ${JSON.stringify(reasons)}`);
  expect(differences).toEqual([]);
  expect(Object.keys(kinds)).toHaveLength(14);
  for (const [kind, [allowed, refused]] of Object.entries(kinds)) {
    expect(allowed, kind).toBeGreaterThan(10);
    expect(refused, kind).toBeGreaterThan(10);
  }
  for (const reason of [
    "HostnameNotAllowed",
    "PortNotAllowed",
    "ProtocolNotAllowed",
    "NamespaceNotAllowed",
    "RouteKindNotAllowed",
  ])
    expect(reasons[reason], reason).toBeGreaterThan(20);
  expect(leftToTheEngine).toBeLessThan(OBJECTS / 10);
});

test("a hostname in use goes to another namespace only when it is given up or given away", async () => {
  const { differences, ...counts } = await program<ClaimHistory>("claims", "--steps", "60");
  console.log(JSON.stringify(counts));
  expect(differences).toEqual([]);
  expect(counts.survives).toBe(true);
  expect(counts.allowed).toBeGreaterThan(5);
  expect(counts.refused).toBeGreaterThan(5);
  expect(counts.changes).toBeGreaterThan(0);
  expect(counts.transfers).toBeGreaterThan(0);
});

test("without HostnameClaims sets are let in, or refused where the platform chose so", async () => {
  await ok(bed.kubectl(["delete", "hostnameclaims", "-n", "gateways", "--all"]));
  const binding = "validatingadmissionpolicybinding/mergeway-hostname-claims-gateways";
  const choose = (action: string): Promise<string> =>
    ok(
      bed.kubectl([
        ...["patch", binding, "--type=merge", "-p"],
        JSON.stringify({ spec: { paramRef: { parameterNotFoundAction: action } } }),
      ]),
    );
  const create = async (namespace: string): Promise<string> => {
    const listeners = [{ name: "web", port: 80, protocol: "HTTP", hostname: "free.test" }];
    const spec = { parentRef: { name: "nobody", namespace: "gateways" }, listeners };
    const metadata = { name: "free", namespace };
    const object = { apiVersion: "gateway.networking.k8s.io/v1", kind: "ListenerSet", metadata, spec };
    const args = ["create", "--dry-run=server", "-f", "-"];
    return (await bed.kubectl(args, JSON.stringify(object))).err;
  };
  await expect.poll(() => create("shop"), WAIT).toBe("");
  await choose("Deny");
  await expect.poll(() => create("shop"), WAIT).toContain("mergeway-hostname-claims");
  expect(await create("gateways")).toBe("");
  await choose("Allow");
  await expect.poll(() => create("shop"), WAIT).toBe("");
});

/** With `failurePolicy: Fail`, what cannot be evaluated is refused. */
test("the largest policies and sets are within the limits of the API server", async () => {
  const names = (count: number, text: string): readonly string[] =>
    Array.from({ length: count }, (_, index) => text.replace("N", String(index)));
  const targetRefs = [{ kind: "Gateway", name: "large" }];
  const unselected = { namespaceSelector: { matchLabels: { team: "nobody" } }, hostnames: { allow: ["*"] } };
  const rule = {
    namespaceSelector: {},
    hostnames: { allow: [...names(63, "N.other.test"), "*.shop.test"], deny: names(64, "*.N.denied.test") },
  };
  const policy = {
    apiVersion: "mergeway.dev/v1alpha1",
    kind: "TenantPolicy",
    metadata: { name: "large", namespace: "gateways" },
    spec: {
      targetRefs,
      reservedHostnames: names(1024, "*.reserved-N.example.com"),
      rules: [...Array(1000).fill(unselected), rule],
    },
  };
  const listeners = names(64, "*.N.shop.test").map((hostname, index) => ({
    name: `l${index}`,
    port: 80,
    protocol: "HTTP",
    hostname,
  }));
  const set = (last: object): string =>
    JSON.stringify({
      apiVersion: "gateway.networking.k8s.io/v1",
      kind: "ListenerSet",
      metadata: { name: "large", namespace: "shop" },
      spec: { parentRef: { name: "large", namespace: "gateways" }, listeners: [...listeners.slice(1), last] },
    });
  await ok(bed.kubectl(["create", "-f", "-"], JSON.stringify(policy)));
  const create = async (last: object): Promise<string> =>
    (await bed.kubectl(["create", "--dry-run=server", "-f", "-"], set(last))).err;
  const reserved = { name: "last", port: 80, protocol: "HTTP", hostname: "x.reserved-1023.example.com" };
  await expect.poll(() => create(reserved), WAIT).toContain("HostnameNotAllowed");
  expect(await create({ name: "last", port: 81, protocol: "HTTP", hostname: "a.shop.test" })).toBe("");
  await ok(bed.kubectl(["delete", "tenantpolicy", "-n", "gateways", "large"]));
});

describe("over time", () => {
  const policy = (name: string, allow: readonly string[]): string =>
    JSON.stringify({
      apiVersion: "mergeway.dev/v1alpha1",
      kind: "TenantPolicy",
      metadata: { name, namespace: "gateways" },
      spec: {
        targetRefs: [{ kind: "Gateway", name: "time" }],
        rules: [{ namespaceSelector: {}, hostnames: { allow } }],
      },
    });
  const set = (name: string, hostname: string, labels: object = {}): string =>
    JSON.stringify({
      apiVersion: "gateway.networking.k8s.io/v1",
      kind: "ListenerSet",
      metadata: { name, namespace: "shop", labels },
      spec: {
        parentRef: { name: "time", namespace: "gateways" },
        listeners: [{ name: "web", port: 80, protocol: "HTTP", hostname }],
      },
    });
  const apply = async (text: string, ...more: readonly string[]): Promise<string> => {
    const { code, err } = await bed.kubectl(["apply", "-f", "-", ...more], text);
    return code === 0 ? "" : err;
  };
  const refused = async (text: string): Promise<boolean> =>
    (await apply(text, "--dry-run=server")).includes("HostnameNotAllowed: one of the hostnames");

  test("an object from before a stricter rule can be written with the same spec, and no other", async () => {
    expect(await apply(policy("first", ["*.shop.test"]))).toBe("");
    await vi.waitUntil(() => refused(set("probe", "else.test")), WAIT);
    expect(await apply(set("old", "old.shop.test"))).toBe("");
    expect(await apply(policy("first", ["new.shop.test"]))).toBe("");
    await vi.waitUntil(() => refused(set("probe", "old.shop.test")), WAIT);
    expect(await apply(set("old", "old.shop.test", { touched: "yes" }))).toBe("");
    expect(await apply(set("old", "older.shop.test"))).toContain(
      "HostnameNotAllowed: one of the hostnames older.shop.test is not allowed to namespace shop",
    );
    expect(await apply(set("old", "new.shop.test"))).toBe("");
  });

  test("a policy that gives way to an older one does not count", async () => {
    expect(await apply(policy("second", ["second.test"]))).toBe("");
    await vi.waitUntil(() => refused(set("probe", "new.shop.test")), WAIT);
    const condition = {
      type: "Accepted",
      status: "False",
      reason: "Conflicted",
      message: "an older TenantPolicy has the same target",
      lastTransitionTime: "2026-01-01T00:00:00Z",
    };
    const ancestors = [
      { ancestorRef: { name: "time" }, controllerName: "mergeway.dev/controller", conditions: [condition] },
    ];
    const patch = JSON.stringify({ status: { ancestors } });
    const where = ["-n", "gateways", "tenantpolicy/second", "--subresource=status", "--type=merge"];
    await ok(bed.kubectl(["patch", ...where, "-p", patch]));
    await vi.waitUntil(async () => !(await refused(set("probe", "new.shop.test"))), WAIT);
    expect(await refused(set("probe", "second.test"))).toBe(true);
  });
});
