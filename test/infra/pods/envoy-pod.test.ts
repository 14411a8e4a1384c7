import { describe, expect, test } from "vitest";
import { desiredManifests } from "../../../src/infra/desired.ts";
import type {
  DataPlaneContext,
  InfrastructureRequest,
  Manifest,
} from "../../../src/infra/objects/manifest.ts";
import { fullGateway } from "../../chart/full-gateway.ts";

interface Container {
  readonly name: string;
  readonly image: string;
  readonly args?: readonly string[];
  readonly restartPolicy?: string;
  readonly resources?: unknown;
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
  readonly lifecycle?: unknown;
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
}

interface PodSpec {
  readonly initContainers?: readonly Container[];
  readonly containers: readonly Container[];
}

const { context } = fullGateway;

function podOf(
  parameters: InfrastructureRequest["parameters"],
  more: Partial<DataPlaneContext> = {},
): PodSpec {
  const made = desiredManifests({ ...fullGateway.request, parameters }, { ...context, ...more });
  const deployment = made.find(({ kind }) => kind === "Deployment") as Manifest & {
    readonly spec: { readonly template: { readonly spec: PodSpec } };
  };
  return deployment.spec.template.spec;
}

function only(containers: readonly Container[] | undefined): Container {
  if (containers?.length !== 1) throw new Error("there is not exactly one container");
  return containers[0] as Container;
}

describe("the pod of Envoy", () => {
  test("is the controller's choice where parameters make none, and theirs where they do", () => {
    expect(podOf({}, { dataPlane: "envoy" }).containers.map(({ name }) => name)).toEqual(["envoy"]);
    expect(podOf({}, { dataPlane: "embedded" }).containers.map(({ name }) => name)).toEqual(["gateway"]);
    const chosen = podOf({ dataPlane: "embedded" }, { dataPlane: "envoy" });
    expect(chosen.containers.map(({ name }) => name)).toEqual(["gateway"]);
  });

  test("has the agent as a sidecar, which is there before Envoy and after it", () => {
    const { initContainers, containers } = podOf({});
    const agent = only(initContainers);
    expect(agent).toMatchObject({ name: "agent", image: context.image, restartPolicy: "Always" });
    expect(only(containers).image).toBe(context.envoyImage);
    const shared = (container: Container): readonly string[] =>
      container.volumeMounts.filter(({ name }) => name === "envoy").map(({ mountPath }) => mountPath);
    expect(shared(agent)).toEqual(shared(only(containers)));
  });

  test("is ready as Envoy answers, whatever the agent is doing", () => {
    const { initContainers, containers } = podOf({});
    expect(only(initContainers)).not.toHaveProperty("readinessProbe");
    const probed = only(containers);
    const told = only(initContainers).env?.find(({ name }) => name === "MERGEWAY_READINESS_PORT")?.value;
    expect(probed).toMatchObject({
      readinessProbe: { httpGet: { port: "readiness" } },
      ports: [{ name: "readiness", containerPort: Number(told) }],
    });
  });

  test("asks the agent to drain with the token that the agent knows, another for each Gateway", () => {
    const { initContainers, containers } = podOf({}, { drainToken: (uid) => `for ${uid}` });
    const token = `for ${fullGateway.request.gateway.metadata.uid}`;
    const known = only(initContainers).env?.find(({ name }) => name === "MERGEWAY_DRAIN_TOKEN")?.value;
    expect(known).toBe(token);
    expect(only(containers).lifecycle).toMatchObject({
      preStop: {
        httpGet: { path: "/drain", httpHeaders: [{ name: "Authorization", value: `Bearer ${token}` }] },
      },
    });
  });

  test("tells the agent what is told of requests, and nothing where nobody wants any", () => {
    const environment = (parameters: InfrastructureRequest["parameters"]): readonly string[] =>
      (only(podOf(parameters).initContainers).env ?? [])
        .filter(({ name }) => name === "MERGEWAY_TELEMETRY")
        .map(({ name, value }) => `${name}=${value}`);
    expect(environment({})).toEqual([]);
    const telemetry = {
      accessLog: { stdout: {} },
      tracing: { otlp: { endpoint: "https://collector:4317" }, samplingPercentage: 5 },
    };
    expect(environment(telemetry)).toEqual([`MERGEWAY_TELEMETRY=${JSON.stringify(telemetry)}`]);
  });

  test("takes images, threads and resources from the parameters", () => {
    const agentResources = { requests: { cpu: "1" } };
    const resources = { limits: { memory: "2Gi" } };
    const pod = podOf({ image: "own:2", workers: 3, resources, envoy: { image: "envoy:2", agentResources } });
    expect(only(pod.initContainers)).toMatchObject({ image: "own:2", resources: agentResources });
    const envoy = only(pod.containers);
    expect(envoy).toMatchObject({ image: "envoy:2", resources });
    expect(envoy.args?.join(" ")).toContain("--concurrency 3");
    expect(only(podOf({}).containers).args).not.toContain("--concurrency");
  });
});
