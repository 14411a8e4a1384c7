/**
 * `mergeway status`, `check`, `explain` and `page` of a real cluster: as its owner, as a tenant
 * with few rights, and as a plugin of kubectl.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Bed, type Outcome, ok } from "../../tools/cluster/bed.ts";
import { builtFolder } from "../../tools/programs/build.ts";

const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));

const OBJECTS = `
apiVersion: v1
kind: Namespace
metadata: {name: gateways}
---
apiVersion: v1
kind: Namespace
metadata: {name: team-a}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: mergeway}
spec: {controllerName: mergeway.dev/controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: other}
spec: {controllerName: example.com/other}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shared, namespace: gateways}
spec:
  gatewayClassName: mergeway
  allowedListeners: {namespaces: {from: All}}
  listeners: [{name: web, port: 80, protocol: HTTP, hostname: shared.example.com}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: foreign, namespace: gateways}
spec:
  gatewayClassName: other
  listeners: [{name: web, port: 80, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: a, namespace: team-a}
spec:
  parentRef: {name: shared, namespace: gateways}
  listeners:
  - {name: web, port: 80, protocol: HTTP, hostname: a.example.com}
  - {name: safe, port: 443, protocol: HTTPS, hostname: a.example.com, tls: {certificateRefs: [{name: absent}]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: team-a}
spec:
  parentRefs: [{kind: ListenerSet, name: a, sectionName: web}]
  rules: [{backendRefs: [{name: web, port: 80}]}]
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: team-a}
spec: {ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: team-a, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
endpoints: [{addresses: [10.1.2.3]}]
ports: [{port: 80}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: tenant, namespace: team-a}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: tenant, namespace: team-a}
rules:
- {apiGroups: [gateway.networking.k8s.io], resources: ['*'], verbs: [get, list, watch]}
- {apiGroups: ['', discovery.k8s.io], resources: [services, endpointslices, configmaps], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: tenant, namespace: team-a}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: tenant}
subjects: [{kind: ServiceAccount, name: tenant, namespace: team-a}]
`;

let bed: Bed;
let places: string;

function mergeway(...args: readonly string[]): Promise<Outcome> {
  return bed.run([process.execPath, MAIN, ...args]);
}

beforeAll(async () => {
  places = mkdtempSync(join(tmpdir(), "mergeway-cli-e2e-"));
  bed = await Bed.up("e2e-cli");
  await ok(bed.kubectl(["apply", "-f", "-"], OBJECTS));
  await ok(bed.run(["cp", bed.cluster.kubeconfig, kubeconfig()]));
  const token = (await ok(bed.kubectl(["-n", "team-a", "create", "token", "tenant"]))).trim();
  const config = (...args: readonly string[]): Promise<string> =>
    ok(bed.kubectl(["--kubeconfig", kubeconfig(), "config", ...args]));
  const cluster = await config("view", "-o", "jsonpath={.clusters[0].name}");
  await config("set-credentials", "tenant", `--token=${token}`);
  await config("set-context", "tenant", `--cluster=${cluster}`, "--user=tenant");
});

afterAll(async () => {
  await bed?.down();
  rmSync(places, { recursive: true, force: true });
});

function kubeconfig(): string {
  return join(places, "kubeconfig");
}

describe("as the owner of the cluster", () => {
  test("status shows who serves what", async () => {
    const { code, out, err } = await mergeway("status");
    expect([code, err]).toEqual([0, ""]);
    expect(out).toContain("Gateway gateways/shared");
    expect(out).toMatch(/ListenerSet team-a\/a {2}set/);
    expect(out).toMatch(/web {2}HTTP :80 a\.example\.com {2}serving/);
    expect(out).toContain("HTTPRoute team-a/web");
  });

  test("a Gateway of another controller is not Mergeway's", async () => {
    expect(await ok(mergeway("status", "-o", "wide"))).not.toContain("foreign");
  });

  test("status -o yaml has the status that the cluster holds, and the computed one on demand", async () => {
    // The controller does not run here: what the cluster holds is the default of the CRD.
    const held = JSON.parse(await ok(mergeway("status", "-o", "json"))) as List;
    expect(accepted(held)).toBe("Unknown");
    const computed = JSON.parse(await ok(mergeway("status", "-o", "json", "--computed"))) as List;
    expect(accepted(computed)).toBe("True");
  });

  test("explain tells who would answer", async () => {
    const out = await ok(mergeway("explain", "http://a.example.com/", "--json"));
    expect(JSON.parse(out)).toMatchObject({
      outcome: "forward",
      listener: { kind: "ListenerSet", namespace: "team-a", name: "a", section: "web" },
      route: { kind: "HTTPRoute", name: "web" },
    });
  });

  test("check names the object and the field", async () => {
    const { code, out } = await mergeway("check");
    expect(code).toBe(1);
    expect(out).toMatch(/^ListenerSet\/team-a\/a error .*absent/m);
    expect(out).toMatch(/^\d+ objects: /m);
    const { findings } = JSON.parse((await mergeway("check", "--format", "json")).out) as {
      findings: readonly { readonly owner: string; readonly path?: string }[];
    };
    expect(findings.find(({ owner }) => owner === "ListenerSet team-a/a")?.path).toMatch(
      /^spec\.listeners\[1\]/,
    );
  });

  test("of one namespace only what is in it", async () => {
    const { out } = await mergeway("status", "-n", "gateways", "-o", "wide");
    expect(out).toContain("Gateway gateways/shared");
    expect(out).not.toContain("team-a");
  });
});

interface List {
  readonly items: readonly {
    readonly kind: string;
    readonly metadata: { readonly name: string };
    readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
  }[];
}

function accepted({ items }: List): string | undefined {
  const set = items.find(({ kind, metadata }) => kind === "ListenerSet" && metadata.name === "a");
  return set?.status?.conditions?.find(({ type }) => type === "Accepted")?.status;
}

describe("as a tenant", () => {
  const as = ["--context", "tenant"];
  const tenant = (...args: readonly string[]): Promise<Outcome> =>
    mergeway(...args, "--kubeconfig", kubeconfig(), ...as);

  test("what may not be read in its own namespace is told with the missing right", async () => {
    const { code, out, err } = await tenant("status", "-n", "team-a", "-o", "wide");
    expect(code).toBe(1);
    expect(out).toContain("ListenerSet team-a/a");
    expect(err).toMatch(
      /secrets may not be read .*system:serviceaccount:team-a:tenant" cannot list resource "secrets"/,
    );
    expect(err).toMatch(/gatewayclasses\.gateway\.networking\.k8s\.io may not be read/);
    expect(err).not.toMatch(/^.*(services|httproutes).* may not be read/m);
  });

  test("check has it as findings", async () => {
    const { findings } = JSON.parse((await tenant("check", "-n", "team-a", "--format", "json")).out) as {
      findings: readonly { readonly rule: string; readonly message: string }[];
    };
    const forbidden = findings
      .filter(({ rule }) => rule === "cluster/forbidden")
      .map(({ message }) => message);
    expect(forbidden.some((message) => message.startsWith("secrets may not be read"))).toBe(true);
  });

  test("page shows its own namespace, and nothing of the others", async () => {
    const page = [process.execPath, MAIN, "page", "--kubeconfig", kubeconfig(), ...as, "-n", "team-a"];
    const script = `
      "$@" > ${places}/page 2>&1 & process=$!
      for i in $(seq 200); do
        link=$(grep -o 'http://127.0.0.1:[0-9]*/open?key=[^ ]*' ${places}/page) && break; sleep 0.1
      done
      base=\${link%%/open*}
      curl -s "$base/api/v1/outline" -o /dev/null -w '%{http_code}\n'
      curl -s -H "Authorization: Bearer \${link##*key=}" "$base/api/v1/outline"
      kill $process; wait $process; echo; echo "ended with $?"`;
    const out = await ok(bed.run(["sh", "-c", script, "page", ...page]));
    const [anonymous, outline, end] = out.trim().split("\n");
    expect([anonymous, end]).toEqual(["401", "ended with 0"]);
    expect(outline).toContain("a.example.com");
    expect(outline).not.toMatch(/shared\.example\.com|"name":"foreign"/);
  });

  test("nothing of the others is shown", async () => {
    const { code, out, err } = await tenant("status", "-o", "yaml");
    expect(code).toBe(1);
    expect(out).toBe("");
    expect(err).toContain("at the cluster scope");
    expect(err).toContain("--namespace");
  });
});

test("as a plugin of kubectl", async () => {
  // That the package has a program of this name is test/cli/package.test.ts's business.
  const script = `#!/bin/sh\nexec "${process.execPath}" "${MAIN}" "$@"\n`;
  writeFileSync(join(places, "kubectl-mergeway"), script, { mode: 0o755 });
  const path = [places, builtFolder("kubernetes"), process.env["PATH"]].join(":");
  const plugin = (...args: readonly string[]): Promise<Outcome> =>
    bed.run(["env", `PATH=${path}`, "kubectl", "mergeway", ...args]);
  expect(await ok(plugin("status", "-o", "wide"))).toContain("ListenerSet team-a/a");
  const { code, err } = await plugin("status", "--context", "nowhere");
  expect(code).toBe(2);
  expect(err).toContain("no context nowhere");
});
