import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { knownKinds } from "../../../src/api/admission/kinds.ts";
import type { Kind } from "../../../src/api/resource.ts";
import { admissionPolicy } from "../../../src/cli/policy/admission-policy.ts";
import { claimsPolicy } from "../../../src/cli/policy/claims-policy.ts";
import { yamlOf } from "../../../src/cli/policy/render-policies.ts";
import { PLURAL_OF_KIND } from "../../../src/kubernetes/kinds.ts";
import { folder, mergeway, ROOT } from "../mergeway.ts";

function policy(namespace: string, name: string, more = ""): string {
  return `apiVersion: mergeway.dev/v1alpha1
kind: TenantPolicy
metadata: {name: ${name}, namespace: ${namespace}}
spec: {targetRefs: [{kind: Gateway, name: shared}]${more}}
---
`;
}

interface Rendered {
  readonly kind: string;
  readonly spec: Readonly<Record<string, unknown>>;
}

describe("policy render", () => {
  test("prints one admission policy, and a binding for each namespace with TenantPolicies", async () => {
    const text = policy("infra", "one") + policy("infra", "two") + policy("edge", "one");
    const { code, stdout } = await mergeway(["policy", "render", folder({ "policies.yaml": text })]);
    expect(code).toBe(0);
    const [first, ...bindings] = parseAllDocuments(stdout).map((each) => each.toJS() as Rendered);
    expect(first).toEqual(admissionPolicy("Ignore"));
    expect(bindings.map(({ kind }) => kind)).toEqual(Array(2).fill("ValidatingAdmissionPolicyBinding"));
    expect(bindings.map(({ spec }) => spec["paramRef"])).toMatchObject([
      { namespace: "edge", parameterNotFoundAction: "Allow" },
      { namespace: "infra", parameterNotFoundAction: "Allow" },
    ]);
  });

  test("prints a List in JSON that fails closed when asked to", async () => {
    const manifests = folder({ "policy.yaml": policy("infra", "one") });
    const args = ["policy", "render", manifests, "-o", "json", "--failure-policy", "Fail"];
    const { stdout } = await mergeway(args);
    const { kind, items } = JSON.parse(stdout) as { kind: string; items: readonly Rendered[] };
    expect(kind).toBe("List");
    expect(items[0]?.spec["failurePolicy"]).toBe("Fail");
  });

  test("prints the policy of claims where a TenantPolicy holds them, open unless asked otherwise", async () => {
    const text = policy("infra", "one", ", claims: Hold") + policy("edge", "one");
    const manifests = folder({ "policies.yaml": text });
    const rendered = async (...flags: readonly string[]): Promise<readonly Rendered[]> => {
      const { stdout } = await mergeway(["policy", "render", manifests, ...flags]);
      return parseAllDocuments(stdout).map((each) => each.toJS() as Rendered);
    };
    const [claims, binding, ...rest] = (await rendered()).slice(3);
    expect(claims).toEqual(claimsPolicy("Ignore"));
    expect(binding?.spec["paramRef"]).toMatchObject({ namespace: "infra", parameterNotFoundAction: "Allow" });
    expect(rest).toEqual([]);
    const closed = (await rendered("--missing-claims", "Deny")).at(-1);
    expect(closed?.spec["paramRef"]).toMatchObject({ parameterNotFoundAction: "Deny" });
  });

  test("prints nothing where there is no TenantPolicy", async () => {
    const manifests = folder({
      "namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: infra}\n",
    });
    const { code, stdout, stderr } = await mergeway(["policy", "render", manifests]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain("there is no TenantPolicy");
    expect((await mergeway(["policy", "draw"])).code).toBe(2);
  });
});

describe("the admission policy", () => {
  test("of the chart is the one that policy render prints", async () => {
    const file = join(ROOT, "charts/mergeway/files/tenant-admission.yaml");
    await expect(yamlOf(admissionPolicy("Ignore"))).toMatchFileSnapshot(file);
  });

  test("of claims in the chart is the one that policy render prints", async () => {
    const file = join(ROOT, "charts/mergeway/files/claims-admission.yaml");
    await expect(yamlOf(claimsPolicy("Ignore"))).toMatchFileSnapshot(file);
  });

  test("covers every kind that has listeners or hostnames", () => {
    const { spec } = admissionPolicy("Ignore") as {
      readonly spec: {
        readonly matchConstraints: {
          readonly resourceRules: readonly {
            readonly apiGroups: readonly string[];
            readonly resources: readonly string[];
          }[];
        };
      };
    };
    const covered = spec.matchConstraints.resourceRules.flatMap(({ apiGroups: [group], resources }) =>
      resources.map((plural) => `${group}/${plural}`),
    );
    const asking = knownKinds("experimental").filter(({ served, kind }) =>
      served.some(({ schema }) => {
        const fields = (schema as { properties?: { spec?: { properties?: object } } }).properties?.spec
          ?.properties;
        return (
          kind.endsWith("Route") || (fields !== undefined && ("listeners" in fields || "hostnames" in fields))
        );
      }),
    );
    expect(asking.length).toBeGreaterThan(6);
    expect(covered.toSorted()).toEqual(
      asking.map(({ group, kind }) => `${group}/${PLURAL_OF_KIND[kind as Kind]}`).toSorted(),
    );
  });
});
