/** The chart, with a real Helm and a real API server. What needs neither is in test/chart. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { GatewayParametersSpec } from "../../src/api/gateway-parameters.ts";
import { desiredManifests } from "../../src/infra/desired.ts";
import { Bed, localHelm, ok } from "../../tools/cluster/bed.ts";
import {
  CHART,
  CRD_FILE,
  installManifests,
  manifestOf,
  parseManifests,
  type RenderedManifest,
  readText,
} from "../../tools/cluster/chart.ts";
import { renderInstall } from "../../tools/render-install.ts";
import { fullGateway } from "../chart/full-gateway.ts";

const NAMESPACE = "mergeway-system";

async function render(...settings: readonly string[]): Promise<readonly RenderedManifest[]> {
  const base = ["template", "mergeway", CHART, "--namespace", NAMESPACE];
  return parseManifests(await ok(localHelm([...base, ...settings])));
}

const EVERYTHING = [
  "--set=gateway.create=true,networkPolicy.enabled=true,autoscaling.enabled=true,commonLabels.team=platform",
  "--set=gatewayClass.parameters.replicas=2,global.imageRegistry=registry.test,global.imagePullSecrets={pull}",
  "--set=networkPolicy.metricsFrom[0].namespaceSelector.matchLabels.name=monitoring",
  "--set=networkPolicy.dataPlane.enabled=true",
] as const;

describe("helm", () => {
  test("lints the chart without a remark", async () => {
    const out = await ok(localHelm(["lint", "--strict", CHART]));
    expect(out).not.toMatch(/\[(WARNING|ERROR)\]/);
  });

  test("renders install.yaml as it is", async () => {
    expect(await renderInstall()).toBe(readText("install.yaml"));
  });

  test("confines the pods of Gateways to pods, DNS and named peers, in each namespace that is named", async () => {
    const rendered = await render(
      "--set=networkPolicy.dataPlane.enabled=true,networkPolicy.dataPlane.namespaces={edge,infra}",
      "--set=networkPolicy.dataPlane.to[0].ipBlock.cidr=192.0.2.0/24",
    );
    const policies = rendered.filter(({ kind }) => kind === "NetworkPolicy");
    expect(policies.map(({ metadata }) => metadata.namespace)).toEqual(["edge", "infra"]);
    for (const policy of policies)
      expect(policy).toMatchObject({
        spec: {
          policyTypes: ["Egress", "Ingress"],
          // All but the admin port.
          ingress: [
            {
              ports: [
                { port: 1, endPort: 19_900, protocol: "TCP" },
                { port: 19_902, endPort: 65_535, protocol: "TCP" },
                { port: 1, endPort: 65_535, protocol: "UDP" },
              ],
            },
          ],
          egress: [
            { ports: [{ port: 53 }, { port: 53 }] },
            { to: [{ namespaceSelector: {} }] },
            { to: [{ ipBlock: { cidr: "192.0.2.0/24" } }] },
          ],
        },
      });
  });

  test.each([
    ["an unknown value", ["--set=replica=3"], "additional properties 'replica' not allowed"],
    ["an unknown value further down", ["--set=controller.nmae=x"], "additional properties 'nmae'"],
    ["no replica", ["--set=replicas=0"], "/replicas"],
    ["a privileged port", ["--set=ports.stream=443"], "/ports/stream"],
    ["a controller name without a domain", ["--set=controller.name=mergeway"], "/controller/name"],
    [
      "a namespace that cannot be",
      ["--set=controller.watchNamespaces={Team_A}"],
      "/controller/watchNamespaces/0",
    ],
    ["a digest that is none", ["--set=image.digest=latest"], "/image/digest"],
    ["several writers", ["--set=controller.leaderElection.enabled=false"], "every replica would write"],
    [
      "a Gateway that would not be seen",
      ["--set=controller.watchNamespaces={team-a},gateway.create=true"],
      `add it to controller.watchNamespaces`,
    ],
    [
      "parameters that would not be seen",
      ["--set=controller.watchNamespaces={team-a},gatewayClass.parameters.replicas=2"],
      `add it to controller.watchNamespaces`,
    ],
    ["an account without a name", ["--set=serviceAccount.create=false"], "serviceAccount.name is needed"],
    [
      "a range upside down",
      ["--set=autoscaling.minReplicas=5,autoscaling.maxReplicas=2"],
      "must not be greater",
    ],
  ])("refuses %s", async (_title, settings, reason) => {
    const { code, err } = await localHelm(["template", "mergeway", CHART, ...settings]);
    expect(code).not.toBe(0);
    expect(err).toContain(reason);
  });

  test("gives rights in the watched namespaces alone", async () => {
    const manifests = await render("--set=controller.watchNamespaces={gateways,team-a}");
    const roles = manifests.filter(({ kind }) => kind === "ClusterRole");
    expect(roles.map(({ metadata }) => metadata.name)).toEqual(["mergeway-cluster"]);
    const namespaced = manifests.filter(({ kind }) => kind === "Role");
    expect(namespaced.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`).sort()).toEqual([
      "gateways/mergeway-infrastructure",
      "gateways/mergeway-read",
      `${NAMESPACE}/mergeway-own`,
      "team-a/mergeway-infrastructure",
      "team-a/mergeway-read",
    ]);
    const everywhere = manifestOf(installManifests(), "ClusterRole", "mergeway-read");
    for (const role of namespaced.filter(({ metadata }) => metadata.name === "mergeway-read")) {
      expect(role.rules).toEqual(everywhere.rules);
    }
    const seen = roles[0]?.rules?.find(({ resources }) => resources?.includes("namespaces"));
    expect(seen?.resourceNames).toEqual(["gateways", "team-a"]);
    expect(JSON.stringify(manifestOf(manifests, "Deployment"))).toContain(
      "--watch-namespaces=gateways,team-a",
    );
  });

  test("makes what is asked for, and only that", async () => {
    const kinds = async (...settings: string[]): Promise<readonly string[]> =>
      (await render(...settings)).map(({ kind }) => kind);
    expect(await kinds("--set=rbac.create=false")).not.toContain("ClusterRole");
    expect(await kinds("--set=replicas=1")).not.toContain("PodDisruptionBudget");
    expect(await kinds("--set=gatewayClass.create=false")).not.toContain("GatewayClass");
    expect(await kinds("--set=serviceMonitor.enabled=true")).toContain("ServiceMonitor");
    expect(await kinds("--include-crds")).toContain("CustomResourceDefinition");
    expect(await kinds("--include-crds", "--set=crds.enabled=false")).not.toContain(
      "CustomResourceDefinition",
    );
    const all = await kinds(...EVERYTHING);
    for (const kind of ["Gateway", "GatewayParameters", "NetworkPolicy", "HorizontalPodAutoscaler"]) {
      expect(all).toContain(kind);
    }
  });

  test("labels everything, and takes images from the registry of all charts", async () => {
    const manifests = await render(...EVERYTHING);
    for (const { kind, metadata } of manifests) expect(metadata.labels?.["team"], kind).toBe("platform");
    const deployment = JSON.stringify(manifestOf(manifests, "Deployment"));
    const { version } = JSON.parse(readText("package.json")) as { version: string };
    expect(deployment).toContain(`"image":"registry.test/mergeway:${version}"`);
    expect(deployment).toContain(`--data-plane-image=registry.test/mergeway:${version}`);
    expect(deployment).toContain('"imagePullSecrets":[{"name":"pull"}]');
  });
});

describe("a cluster", () => {
  let bed: Bed;

  beforeAll(async () => {
    bed = await Bed.up("e2e-chart");
    await ok(bed.kubectl(["apply", "--server-side", "-f", CRD_FILE]));
    await ok(bed.kubectl(["wait", "--for=condition=Established", "crd/gatewayparameters.mergeway.dev"]));
    for (const name of [NAMESPACE, "restricted", "team-a", "gateways"]) {
      await ok(bed.kubectl(["create", "namespace", name]));
      const standard = ["enforce", "warn"].map((mode) => `pod-security.kubernetes.io/${mode}=restricted`);
      await ok(bed.kubectl(["label", "namespace", name, ...standard]));
    }
  });

  afterAll(async () => {
    await bed?.down();
  });

  const dryRun = ["apply", "--server-side", "--dry-run=server", "-f", "-"];

  test.each([
    ["its defaults", []],
    ["everything there is", EVERYTHING],
    ["namespaces of its own", ["--set=controller.watchNamespaces={gateways,team-a}"]],
  ])("accepts the chart with %s, without a warning", async (_title, settings) => {
    const manifests = await render(...settings);
    const { code, err } = await bed.kubectl(dryRun, manifests.map((each) => JSON.stringify(each)).join("\n"));
    expect(err).toBe("");
    expect(code).toBe(0);
  });

  test("accepts install.yaml, without a warning", async () => {
    const { code, err } = await bed.kubectl(dryRun, readText("install.yaml"));
    // The namespace and the CRD are here already, applied by others.
    expect(err).toBe("");
    expect(code).toBe(0);
  });

  test("accepts what serves a Gateway, and would run its pods where only restricted ones may", async () => {
    const made = desiredManifests(fullGateway.request, fullGateway.context);
    const { code, err } = await bed.kubectl(dryRun, made.map((each) => JSON.stringify(each)).join("\n"));
    expect(err).toBe("");
    expect(code).toBe(0);
    const deployment = made.find(({ kind }) => kind === "Deployment");
    await podIsAdmitted(bed, "restricted", deployment as unknown as Template);
  });

  test("would run the controller's pods where only restricted ones may", async () => {
    const deployment = manifestOf(installManifests(), "Deployment");
    await podIsAdmitted(bed, NAMESPACE, deployment as unknown as Template);
  });

  test("accepts every manifest of the guide and of the reference", async () => {
    const pages = [readText("docs/guides/kubernetes.md"), readText("docs/reference/gateway-parameters.md")];
    const blocks = pages.flatMap((page) =>
      [...page.matchAll(/^```yaml\n(.*?)^```$/gms)].map(([, block]) => block),
    );
    expect(blocks.length).toBe(5);
    const { code, err } = await bed.kubectl(dryRun, blocks.join("---\n"));
    expect(err).toBe("");
    expect(code).toBe(0);
  });

  const parameters = (spec: unknown): string =>
    JSON.stringify({
      apiVersion: "mergeway.dev/v1alpha1",
      kind: "GatewayParameters",
      metadata: { name: "tried", namespace: "gateways" },
      spec,
    });

  test.each<[string, GatewayParametersSpec]>([
    ["nothing", {}],
    ["no pods", { replicas: 0 }],
    [
      "quantities of all sorts",
      { resources: { requests: { cpu: "1.5", memory: "1e9" }, limits: { cpu: "250m" } } },
    ],
    ["a percentage", { podDisruptionBudget: { minAvailable: "100%" } }],
    ["a number", { podDisruptionBudget: { minAvailable: 3 } }],
    ["an autoscaler", { autoscaling: { minReplicas: 4, maxReplicas: 4 } }],
    ["all that serves a whole Gateway", fullGateway.request.parameters],
    [
      "Kubernetes' own structures",
      {
        podTemplate: {
          affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } },
          topologySpreadConstraints: [
            { maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "ScheduleAnyway", labelSelector: {} },
          ],
        },
      },
    ],
  ])("accepts GatewayParameters with %s", async (_title, spec) => {
    expect(await bed.kubectl(dryRun, parameters(spec))).toMatchObject({ code: 0, err: "" });
  });

  test.each<[string, unknown, string]>([
    ["replicas and autoscaling", { replicas: 2, autoscaling: { maxReplicas: 3 } }, "not both"],
    [
      "more minimum than maximum",
      { autoscaling: { minReplicas: 3, maxReplicas: 2 } },
      "must not be less than",
    ],
    ["autoscaling without an end", { autoscaling: { minReplicas: 3 } }, "maxReplicas"],
    ["fewer pods than none", { replicas: -1 }, "replicas"],
    ["too many pods", { replicas: 101 }, "replicas"],
    ["a data plane nobody knows", { dataPlane: "apache" }, "dataPlane"],
    ["an image with a space", { image: "a b" }, "image"],
    ["a quantity that is none", { resources: { requests: { cpu: "lots" } } }, "cpu"],
    ["a percentage above 100", { podDisruptionBudget: { minAvailable: "101%" } }, "percentage"],
    ["a negative budget", { podDisruptionBudget: { minAvailable: -1 } }, "percentage"],
    [
      "a class without a load balancer",
      { service: { type: "NodePort", loadBalancerClass: "x" } },
      "loadBalancerClass",
    ],
    [
      "a policy that means nothing",
      { service: { type: "ClusterIP", externalTrafficPolicy: "Local" } },
      "externalTrafficPolicy",
    ],
    [
      "a grace without end",
      { podTemplate: { terminationGracePeriodSeconds: 86_400 } },
      "terminationGracePeriod",
    ],
    ["a field nobody knows", { replica: 1 }, "replica"],
    ["a security context", { podTemplate: { securityContext: { runAsUser: 0 } } }, "securityContext"],
  ])("refuses GatewayParameters with %s", async (_title, spec, reason) => {
    const { code, err } = await bed.kubectl([...dryRun, "--validate=strict"], parameters(spec));
    expect(code).not.toBe(0);
    expect(err).toContain(reason);
  });

  test("keeps a newer CRD when an older chart is installed, upgraded and removed", async () => {
    const crd = "crd/gatewayparameters.mergeway.dev";
    await ok(bed.kubectl(["annotate", crd, "--overwrite", "mergeway.dev/version=99.0.0"]));
    const version = (): Promise<string> =>
      ok(bed.kubectl(["get", crd, "-o", "jsonpath={.metadata.annotations.mergeway\\.dev/version}"]));
    const parameters = "--set=gatewayClass.parameters.workers=2";
    await ok(bed.helm(["install", "mergeway", CHART, "-n", NAMESPACE, parameters]));
    expect(await version()).toBe("99.0.0");
    await ok(bed.helm(["upgrade", "mergeway", CHART, "-n", NAMESPACE, "--set=replicas=1"]));
    expect(await version()).toBe("99.0.0");
    await ok(bed.helm(["uninstall", "mergeway", "-n", NAMESPACE]));
    expect(await version()).toBe("99.0.0");
  });

  test("gets the CRD from the chart when it has none, before the first object of it", async () => {
    await ok(bed.kubectl(["delete", "crd", "gatewayparameters.mergeway.dev"]));
    const parameters = "--set=gatewayClass.parameters.workers=2";
    await ok(bed.helm(["install", "mergeway", CHART, "-n", NAMESPACE, parameters]));
    const stored = await ok(
      bed.kubectl(["-n", NAMESPACE, "get", "gwparams", "mergeway", "-o", "jsonpath={.spec}"]),
    );
    expect(JSON.parse(stored)).toEqual({ workers: 2 });
    await ok(bed.helm(["uninstall", "mergeway", "-n", NAMESPACE]));
    const [shipped] = parseManifests(readFileSync(CRD_FILE, "utf8"));
    const left = await ok(bed.kubectl(["get", "crd", shipped?.metadata.name ?? "", "-o", "name"]));
    expect(left).toContain("gatewayparameters");
  });
});

interface Template {
  readonly spec: {
    readonly template: {
      readonly metadata: { readonly labels: object };
      readonly spec: { containers: object[] };
    };
  };
}

/**
 * Enforcement is of pods, so a pod is tried; and one that is a little less restricted, to see that
 * somebody looks.
 */
async function podIsAdmitted(bed: Bed, namespace: string, { spec }: Template): Promise<void> {
  // The account is not there in a dry run of the rest; who a pod is has no part in Pod Security.
  const pod = { ...spec.template.spec, serviceAccountName: "default" };
  const attempt = (podSpec: object): ReturnType<Bed["kubectl"]> =>
    bed.kubectl(
      ["create", "--dry-run=server", "-f", "-"],
      JSON.stringify({
        apiVersion: "v1",
        kind: "Pod",
        metadata: { name: "tried", namespace, labels: spec.template.metadata.labels },
        spec: podSpec,
      }),
    );
  expect(await attempt(pod)).toMatchObject({ code: 0, err: "" });
  const loose = pod.containers.map((container) => ({ ...container, securityContext: { privileged: true } }));
  expect((await attempt({ ...pod, containers: loose })).err).toContain('violates PodSecurity "restricted');
}
