// Who is measured, how each is installed (by its own chart, with its own defaults), and where its
// parts are found.

import { type Bed, ok } from "../../tools/cluster/bed.ts";
import { CHART, ROOT, readText } from "../../tools/cluster/chart.ts";
import { loadImage } from "../../tools/cluster/cluster.ts";
import { envoyImage, envoyReference } from "../../tools/images/envoy-image.ts";
import { fullReference } from "../../tools/images/image.ts";
import { productImage } from "../../tools/images/product-image.ts";
import { ENVOY_GATEWAY_VERSION, envoyGateway, envoyGatewayReference } from "./programs.ts";

export interface Part {
  readonly name: string;
  readonly namespace: string;
  readonly selector: string;
  readonly container: string;
}

export interface Pods {
  readonly namespace: string;
  readonly selector: string;
}

export interface Contestant {
  readonly id: string;
  readonly title: string;
  /** CRDs of the Gateway API from the bed; a contestant that brings its own has none. */
  readonly crds: readonly string[];
  readonly class: string;
  readonly controller: string;
  readonly auditUser: string;
  readonly parts: readonly Part[];
  readonly controllerPods: Pods;
  readonly dataPlanePods: Pods;
  readonly install: (bed: Bed) => Promise<void>;
}

const MERGEWAY = "mergeway-system";
const ENVOY_GATEWAY = "envoy-gateway-system";
const INFRA = "infra";

function mergeway(id: string, title: string, dataPlane: "envoy" | "embedded"): Contestant {
  const controllerPods = { namespace: MERGEWAY, selector: "app.kubernetes.io/name=mergeway" };
  const dataPlanePods = { namespace: INFRA, selector: "gateway.networking.k8s.io/gateway-name=shared" };
  const serving =
    dataPlane === "envoy"
      ? [
          { name: "data plane", ...dataPlanePods, container: "envoy" },
          { name: "agent", ...dataPlanePods, container: "agent" },
        ]
      : [{ name: "data plane", ...dataPlanePods, container: "gateway" }];
  return {
    id,
    title,
    crds: ["standard"],
    class: "mergeway",
    controller: "mergeway.dev/controller",
    auditUser: "system:serviceaccount:mergeway-system:mergeway",
    parts: [{ name: "controller", ...controllerPods, container: "controller" }, ...serving],
    controllerPods,
    dataPlanePods,
    install: (bed) => installMergeway(bed, dataPlane),
  };
}

async function installMergeway(bed: Bed, dataPlane: string): Promise<void> {
  const { version } = JSON.parse(readText("package.json")) as { readonly version: string };
  await loadImage(bed.cluster, await productImage(ROOT, `mergeway:${version}`));
  const place = ["-n", MERGEWAY, "--create-namespace"];
  const wait = ["--wait", "--timeout=300s"];
  await ok(bed.helm(["install", "mergeway", CHART, ...place, ...wait, `--set=dataPlane.type=${dataPlane}`]));
}

const envoyGatewayPods = { namespace: ENVOY_GATEWAY, selector: "control-plane=envoy-gateway" };
const envoyGatewayProxies = {
  namespace: ENVOY_GATEWAY,
  selector: `gateway.envoyproxy.io/owning-gateway-name=shared,gateway.envoyproxy.io/owning-gateway-namespace=${INFRA}`,
};

const envoyGatewayContestant: Contestant = {
  id: "envoy-gateway",
  title: `Envoy Gateway ${ENVOY_GATEWAY_VERSION}`,
  crds: [],
  class: "eg",
  controller: "gateway.envoyproxy.io/gatewayclass-controller",
  auditUser: "system:serviceaccount:envoy-gateway-system:envoy-gateway",
  parts: [
    { name: "controller", ...envoyGatewayPods, container: "envoy-gateway" },
    { name: "data plane", ...envoyGatewayProxies, container: "envoy" },
    { name: "agent", ...envoyGatewayProxies, container: "shutdown-manager" },
  ],
  controllerPods: envoyGatewayPods,
  dataPlanePods: envoyGatewayProxies,
  install: installEnvoyGateway,
};

async function installEnvoyGateway(bed: Bed): Promise<void> {
  const { program, chart } = await envoyGateway();
  await loadImage(bed.cluster, {
    reference: envoyGatewayReference,
    layers: [
      [
        { kind: "directory", path: "/tmp", mode: 0o1777 },
        { kind: "file", path: "/usr/local/bin/envoy-gateway", mode: 0o755, source: program },
      ],
    ],
    config: {
      entrypoint: ["/usr/local/bin/envoy-gateway"],
      user: "65532:65532",
      env: ["PATH=/usr/local/bin"],
    },
  });
  // Its own default is an Envoy that the bed cannot pull: both contestants have the same one here.
  // It is started by its name alone, so the image must say where it is, as Envoy's own image does.
  const proxy = await envoyImage();
  await loadImage(bed.cluster, { ...proxy, config: { ...proxy.config, env: ["PATH=/usr/local/bin"] } });
  const image = `--set=global.images.envoyProxy.image=${fullReference(envoyReference)}`;
  const place = ["-n", ENVOY_GATEWAY, "--create-namespace"];
  await ok(bed.helm(["install", "eg", chart, ...place, "--wait", "--timeout=300s", image]));
  const gatewayClass = {
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "GatewayClass",
    metadata: { name: envoyGatewayContestant.class },
    spec: { controllerName: envoyGatewayContestant.controller },
  };
  await ok(bed.kubectl(["apply", "-f", "-"], JSON.stringify(gatewayClass)));
}

export const CONTESTANTS: readonly Contestant[] = [
  mergeway("mergeway-envoy", "Mergeway, Envoy", "envoy"),
  mergeway("mergeway-embedded", "Mergeway, embedded", "embedded"),
  envoyGatewayContestant,
];

/** All whose id is the word or begins with it: `mergeway` is both of its data planes. */
export function contestantsNamed(words: readonly string[]): readonly Contestant[] {
  if (words.length === 0) return CONTESTANTS;
  const unknown = words.find((word) => !CONTESTANTS.some(({ id }) => isNamed(id, word)));
  if (unknown !== undefined) {
    const known = CONTESTANTS.map(({ id }) => id).join(", ");
    throw new Error(`there is no contestant "${unknown}"; there are ${known}`);
  }
  return CONTESTANTS.filter(({ id }) => words.some((word) => isNamed(id, word)));
}

function isNamed(id: string, word: string): boolean {
  return id === word || id.startsWith(`${word}-`);
}
