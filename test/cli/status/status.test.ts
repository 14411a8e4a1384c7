import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { folder, mergeway, ROOT } from "../mergeway.ts";

const EXAMPLE = "examples/two-teams";

interface Conditioned {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly data?: Readonly<Record<string, string>>;
  readonly status?: {
    readonly conditions?: readonly { type: string; status: string; lastTransitionTime: string }[];
  };
}

describe("mergeway status", () => {
  test("shows the tree from Gateway to backend, with both sides of a conflict", async () => {
    const { code, stdout, stderr } = await mergeway(["status", EXAMPLE]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    await expect(stdout).toMatchFileSnapshot(join(ROOT, "test/cli/status/expected/two-teams.tree.txt"));
  });

  test("shows policies at what they are attached to", async () => {
    const { code, stdout, stderr } = await mergeway(["status", "examples/policies"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    await expect(stdout).toMatchFileSnapshot(join(ROOT, "test/cli/status/expected/policies.tree.txt"));
  });

  test("shows why a policy is not accepted, and targets that are not there", async () => {
    const policy = (kind: string, name: string, target: string, rest = ""): string => `
apiVersion: mergeway.dev/v1alpha1
kind: ${kind}
metadata: {name: ${name}, namespace: team-tea${rest}}
spec:
  targetRefs: [${target}]
  defaults: ${kind === "ClientPolicy" ? "{clientAddress: {proxyProtocol: Required}}" : "{rateLimits: [{requests: 5}]}"}
`;
    const own = folder({
      "policies.yaml": [
        policy(
          "TrafficPolicy",
          "old",
          "{kind: HTTPRoute, name: tea}",
          ", creationTimestamp: 2026-01-01T00:00:00Z",
        ),
        policy(
          "TrafficPolicy",
          "new",
          "{kind: HTTPRoute, name: tea}, {kind: HTTPRoute, name: gone}",
          ", creationTimestamp: 2026-01-02T00:00:00Z",
        ),
        policy("TrafficPolicy", "lost", "{kind: ListenerSet, name: tea, sectionName: https}"),
        policy("ClientPolicy", "ports", "{kind: ListenerSet, name: tea}"),
      ].join("---"),
    });
    const { stdout } = await mergeway(["status", "examples/policies", own]);
    const tea = stdout.slice(stdout.indexOf("#3"));
    expect(tea).toBe(`#3 ListenerSet team-tea/tea  set, created 2026-01-03T00:00:00Z
   ├─ ClientPolicy team-tea/ports  defaults clientAddress  not accepted (NotConfinable)
   │  └─ a ClientPolicy holds for whole ports, which other listeners share: attach it to the Gateway itself
   └─ http  HTTP :8080 tea.example.com  serving
      └─ HTTPRoute team-tea/tea  tea.example.com
         ├─ TrafficPolicy team-tea/old  defaults rateLimits  applied
         ├─ TrafficPolicy team-tea/new  defaults rateLimits  not accepted (Conflicted)
         │  └─ an older TrafficPolicy has the same target
         └─ Service team-tea/tea:80  1 endpoint

Targets of policies that are not served
├─ TrafficPolicy team-tea/lost
│  └─ TargetNotFound at ListenerSet team-tea/tea, https: it has no listener of that name
└─ TrafficPolicy team-tea/new
   └─ TargetNotFound at HTTPRoute team-tea/gone: it does not exist
`);
  });

  test("shows how much of its quota each namespace uses, in the tree and as JSON", async () => {
    const own = folder({
      "quota.yaml": `
apiVersion: mergeway.dev/v1alpha1
kind: TenantPolicy
metadata: {name: tenants, namespace: platform}
spec:
  targetRefs: [{kind: Gateway, name: shared}]
  rules:
  - name: teams
    namespaceSelector: {}
    hostnames: {allow: ['*']}
    quota: {listeners: 10, hostnames: 1, routes: 2}
`,
    });
    const { stdout } = await mergeway(["status", EXAMPLE, own]);
    expect(stdout.slice(0, stdout.indexOf("├─ #1"))).toMatchInlineSnapshot(`
      "Gateway platform/shared  class mergeway, 2 sets attached
      ├─ TenantPolicy platform/tenants  0 listeners and 0 routes refused  applied
      │  ├─ namespace team-coffee  listeners 2 of 10, hostnames 1 of 1, routes 1 of 2  rule teams
      │  ├─ namespace team-tea  listeners 2 of 10, hostnames 1 of 1, routes 1 of 2  rule teams
      │  └─ namespace team-zest  listeners 2 of 10, hostnames 1 of 1, routes 1 of 2  rule teams
      "
    `);
    const json = await mergeway(["status", EXAMPLE, own, "-o", "json"]);
    const { quotas } = JSON.parse(json.stdout) as { quotas: readonly object[] };
    expect(quotas[0]).toMatchInlineSnapshot(`
      {
        "gateway": {
          "name": "shared",
          "namespace": "platform",
        },
        "namespace": "team-coffee",
        "resources": [
          {
            "limit": 10,
            "resource": "listeners",
            "used": 2,
          },
          {
            "limit": 1,
            "resource": "hostnames",
            "used": 1,
          },
          {
            "limit": 2,
            "resource": "routes",
            "used": 1,
          },
        ],
        "rule": "teams",
      }
    `);
    expect(JSON.parse((await mergeway(["status", EXAMPLE, "-o", "json"])).stdout)).not.toHaveProperty(
      "quotas",
    );
  });

  test("shows one line for each listener with -o wide", async () => {
    const { stdout } = await mergeway(["status", EXAMPLE, "-o", "wide"]);
    await expect(stdout).toMatchFileSnapshot(join(ROOT, "test/cli/status/expected/two-teams.wide.txt"));
  });

  test("prints every object with the status that an API server would hold", async () => {
    const { stdout } = await mergeway(["status", EXAMPLE, "-o", "yaml"]);
    const objects = parseAllDocuments(stdout).map((document) => document.toJS() as Conditioned);
    const written = readFileSync(join(ROOT, EXAMPLE, "team-zest.yaml"), "utf8").split("---").length;
    expect(objects.length).toBeGreaterThan(written);
    const zest = objects.find(({ kind, metadata }) => kind === "ListenerSet" && metadata.name === "zest");
    expect(zest?.status?.conditions?.[0]).toMatchObject({
      type: "Accepted",
      status: "False",
      reason: "ListenersNotValid",
      lastTransitionTime: "2026-06-01T00:00:00Z",
    });
    const coffee = objects.find(({ kind, metadata }) => kind === "ListenerSet" && metadata.name === "coffee");
    expect(coffee?.status?.conditions?.find(({ type }) => type === "Programmed")?.status).toBe("True");
  });

  test("prints the same objects as JSON and as YAML", async () => {
    const yaml = await mergeway(["status", EXAMPLE, "-o", "yaml"]);
    const json = await mergeway(["status", EXAMPLE, "-o", "json"]);
    const { kind, items } = JSON.parse(json.stdout) as { kind: string; items: unknown[] };
    expect(kind).toBe("List");
    expect(items).toEqual(parseAllDocuments(yaml.stdout).map((document) => document.toJS()));
  });

  test.each(["tree", "wide", "yaml", "json"])("shows no private key with -o %s", async (output) => {
    const { stdout } = await mergeway(["status", EXAMPLE, "-o", output]);
    const secret = readFileSync(join(ROOT, EXAMPLE, "team-tea-certificate.yaml"), "utf8");
    const key = /tls\.key: (\S+)/.exec(secret)?.[1] ?? "";
    expect(key.length).toBeGreaterThan(100);
    expect(stdout).not.toContain(key);
    expect(stdout).not.toContain("PRIVATE KEY");
  });

  test("reads standard input", async () => {
    const input = readFileSync(join(ROOT, EXAMPLE, "gateway.yaml"), "utf8");
    const { code, stdout } = await mergeway(["status", "-", "-o", "wide"], { input });
    expect(code).toBe(0);
    expect(stdout).toContain("Gateway platform/shared");
  });

  test("reports what it cannot read, shows the rest, and exits with 1", async () => {
    const gateway = readFileSync(join(ROOT, EXAMPLE, "gateway.yaml"), "utf8");
    const path = folder({ "gateway.yaml": gateway, "broken.yaml": "apiVersion: v1\nkind: [\n" });
    const { code, stdout, stderr } = await mergeway(["status", path]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^error: .*broken\.yaml:\d+:\d+: /);
    expect(stdout).toContain("Gateway platform/shared");
  });

  test("shows what is not served", async () => {
    const path = folder({ "all.yaml": STRAYS });
    const { stdout } = await mergeway(["status", path]);
    expect(stdout).toMatch(/not attached: NotAllowed/);
    expect(stdout).toMatch(/Attached to nothing\n.*ListenerSet team-b\/orphan/);
    expect(stdout).toMatch(/HTTPRoute team-c\/stray\n.*ParentNotFound at Gateway team-c\/nowhere/);
    expect(stdout).toMatch(/Of other controllers\n.*Gateway other\/theirs/);
  });
});

const STRAYS = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: theirs}
spec: {controllerName: example.com/other}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: theirs, namespace: other}
spec: {gatewayClassName: theirs, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: closed, namespace: infra}
spec: {gatewayClassName: mergeway, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: refused, namespace: team-a}
spec:
  parentRef: {name: closed, namespace: infra}
  listeners: [{name: http, port: 80, protocol: HTTP, hostname: a.example.com}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: orphan, namespace: team-b}
spec:
  parentRef: {name: gone, namespace: infra}
  listeners: [{name: http, port: 80, protocol: HTTP, hostname: b.example.com}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: stray, namespace: team-c}
spec: {parentRefs: [{name: nowhere}], rules: [{}]}
`;
