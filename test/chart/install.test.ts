import { describe, expect, test } from "vitest";
import { GROUP_OF_KIND, type Kind } from "../../src/api/resource.ts";
import { parseCommandLine } from "../../src/cli/command-line.ts";
import { controllerCommand } from "../../src/cli/commands/controller.ts";
import { desiredManifests } from "../../src/infra/desired.ts";
import { PLURAL_OF_KIND } from "../../src/kubernetes/kinds.ts";
import { chartDigest } from "../../tools/chart-digest.ts";
import { CHART, installManifests, manifestOf, parseManifests, readText } from "../../tools/cluster/chart.ts";
import { fullGateway } from "./full-gateway.ts";
import { expandRights, RIGHTS, rightsOfRules, rightText } from "./rights.ts";

const manifests = installManifests();

describe("install.yaml", () => {
  test("was rendered from the chart as it is (run node tools/render-install.ts)", () => {
    const [, recorded] = /^# chart sha256: ([0-9a-f]{64})$/m.exec(readText("install.yaml")) ?? [];
    expect(recorded).toBe(chartDigest(CHART));
  });

  test("names each object once, and every namespaced one in the namespace that it makes", () => {
    const names = manifests.map(
      ({ kind, metadata }) => `${kind} ${metadata.namespace ?? ""}/${metadata.name}`,
    );
    expect(names).toEqual([...new Set(names)]);
    expect(new Set(manifests.flatMap(({ metadata }) => metadata.namespace ?? []))).toEqual(
      new Set([manifestOf(manifests, "Namespace").metadata.name]),
    );
  });

  test("runs the version of the package", () => {
    const { version } = JSON.parse(readText("package.json")) as { version: string };
    expect(JSON.stringify(manifestOf(manifests, "Deployment"))).toContain(`"image":"mergeway:${version}"`);
    const crds = manifests.filter(({ kind }) => kind === "CustomResourceDefinition");
    expect(crds).toHaveLength(6);
    for (const { metadata } of crds) expect(metadata.annotations?.["mergeway.dev/version"]).toBe(version);
  });
});

describe("the chart", () => {
  test.each(["Chart.yaml", "charts/crds/Chart.yaml"])("%s has the version of the package", (file) => {
    const { version } = JSON.parse(readText("package.json")) as { version: string };
    const [chart] = parseManifests(readText("charts/mergeway", file));
    expect(chart).toMatchObject({ version, appVersion: version });
    for (const dependency of (chart?.["dependencies"] ?? []) as { version: string }[]) {
      expect(dependency.version).toBe(version);
    }
  });
});

describe("rights", () => {
  const scopes = { "mergeway-cluster": "cluster", "mergeway-own": "own" } as const;
  const granted = manifests
    .filter(({ kind }) => kind === "ClusterRole" || kind === "Role")
    .flatMap(({ metadata, rules = [] }) =>
      rightsOfRules(scopes[metadata.name as keyof typeof scopes] ?? "watched", rules),
    );

  test("are those of the table, no more and no fewer", () => {
    expect([...new Set(granted.map(rightText))].sort()).toEqual(
      [...new Set(expandRights().map(rightText))].sort(),
    );
  });

  test("have no wildcard", () => {
    expect(granted.filter((right) => Object.values(right).includes("*"))).toEqual([]);
  });

  test("are bound to the controller's account alone", () => {
    const bindings = manifests.filter(({ kind }) => kind === "ClusterRoleBinding" || kind === "RoleBinding");
    const roles = manifests.filter(({ kind }) => kind === "ClusterRole" || kind === "Role");
    expect(bindings.map(({ roleRef }) => `${roleRef?.kind} ${roleRef?.name}`).sort()).toEqual(
      roles.map(({ kind, metadata }) => `${kind} ${metadata.name}`).sort(),
    );
    for (const { subjects } of bindings) {
      expect(subjects).toEqual([{ kind: "ServiceAccount", name: "mergeway", namespace: "mergeway-system" }]);
    }
  });

  test("let every kind be read that the controller reads", () => {
    const texts = new Set(granted.map((right) => rightText({ ...right, scope: "watched" })));
    for (const [kind, resource] of Object.entries(PLURAL_OF_KIND)) {
      for (const verb of ["list", "watch"]) {
        const group = GROUP_OF_KIND[kind as Kind];
        expect(texts).toContain(rightText({ scope: "watched", group, resource, verb }));
      }
    }
  });

  test("let every kind be made that serves a Gateway", () => {
    const texts = new Set(granted.map(rightText));
    const made = desiredManifests(fullGateway.request, fullGateway.context);
    expect(new Set(made.map(({ kind }) => kind)).size).toBe(5);
    for (const { apiVersion, kind } of made) {
      const group = apiVersion.includes("/") ? (apiVersion.split("/")[0] ?? "") : "";
      for (const verb of ["list", "create", "patch", "delete"]) {
        const resource = `${kind.toLowerCase()}s`;
        expect(texts).toContain(rightText({ scope: "watched", group, resource, verb }));
      }
    }
  });

  test("are all explained in the guide", () => {
    const guide = readText("docs/guides/kubernetes.md");
    for (const { resources } of RIGHTS) {
      for (const resource of resources) expect(guide, resource).toContain(`\`${resource}\``);
    }
  });
});

describe("the controller's pods", () => {
  const deployment = manifestOf(manifests, "Deployment") as unknown as {
    spec: { template: { metadata: { labels: object }; spec: ControllerPod } };
  };
  const pod = deployment.spec.template.spec;
  const [container] = pod.containers;

  test("keep to the Pod Security Standard restricted", () => {
    expect(pod.securityContext).toMatchObject({
      runAsNonRoot: true,
      runAsUser: 65532,
      seccompProfile: { type: "RuntimeDefault" },
    });
    expect(container?.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      capabilities: { drop: ["ALL"] },
      readOnlyRootFilesystem: true,
    });
  });

  test("are started with flags that the command has, each with a value that it takes", () => {
    const [command, ...flags] = container?.args ?? [];
    expect(command).toBe(controllerCommand.name);
    expect(flags.length).toBeGreaterThan(10);
    const request = parseCommandLine([controllerCommand], [controllerCommand.name, ...flags]);
    expect(request).toMatchObject({
      type: "run",
      flags: { "log-format": "json", "leader-election": "true" },
    });
  });

  test("are the only ones under the account that get its token", () => {
    expect(pod.automountServiceAccountToken).toBe(true);
    expect(manifestOf(manifests, "ServiceAccount")["automountServiceAccountToken"]).toBe(false);
  });

  test("are found by data plane pods under the name that they tell them", () => {
    const service = manifestOf(manifests, "Service") as unknown as {
      metadata: { name: string; namespace: string };
      spec: { clusterIP: string; selector: object; ports: { name: string; port: number }[] };
    };
    const { name, namespace } = service.metadata;
    const port = service.spec.ports.find((each) => each.name === "stream")?.port;
    expect(container?.args).toContain(`--stream-service=${name}.${namespace}.svc:${port}`);
    expect(container?.args).toContain(`--stream-address=0.0.0.0:${port}`);
    expect(service.spec.clusterIP).toBe("None");
    expect(deployment.spec.template.metadata.labels).toMatchObject(service.spec.selector);
  });
});

interface ControllerPod {
  readonly securityContext: object;
  readonly automountServiceAccountToken: boolean;
  readonly containers: readonly { readonly args: readonly string[]; readonly securityContext: object }[];
}
