import { hostname } from "node:os";
import { DEFAULT_CONTROLLER } from "../../engine/foundation/settings.ts";
import { CannotRun, type Command, defineCommand } from "../foundation/command.ts";
import { createLogger } from "../run/logger.ts";

/** Stock Envoy, in the version that the tests run with. */
const DEFAULT_ENVOY_IMAGE = "envoyproxy/envoy:distroless-v1.40.0";
const DEFAULT_CLOUDFLARED_IMAGE = "cloudflare/cloudflared:2026.8.2";

export const controllerCommand: Command = defineCommand({
  name: "controller",
  summary: "serve the Gateways of a Kubernetes cluster",
  about: [
    "Watches the cluster, gives every Gateway of its classes a data plane in the Gateway's own namespace, and writes statuses. Several replicas may run: all",
    "serve the plan to the data planes, one of them (the holder of the Lease) writes. Finds the cluster as kubectl does, or from within a pod.",
  ].join("\n"),
  arguments: [],
  flags: {
    "controller-name": {
      type: "text",
      value: "NAME",
      default: DEFAULT_CONTROLLER,
      help: "GatewayClasses with this controllerName are served",
    },
    "watch-namespaces": {
      type: "text",
      value: "A,B",
      default: "",
      help: "only these namespaces; all without",
    },
    namespace: { type: "text", value: "NAME", help: "the controller's own namespace; POD_NAMESPACE without" },
    "stream-address": {
      type: "text",
      value: "ADDRESS:PORT",
      default: "0.0.0.0:18000",
      help: "where data planes are given their plan",
    },
    "stream-service": {
      type: "text",
      value: "HOST:PORT",
      help: "the name under which data planes find all replicas (a headless Service)",
    },
    "data-plane": {
      type: "choice",
      values: ["envoy", "embedded"],
      default: "envoy",
      help: "the data plane of Gateways whose parameters do not choose one",
    },
    "data-plane-image": {
      type: "text",
      value: "IMAGE",
      help: "image of this program in data plane pods",
    },
    "envoy-image": {
      type: "text",
      value: "IMAGE",
      default: DEFAULT_ENVOY_IMAGE,
      help: "image of Envoy in data plane pods",
    },
    "data-plane-metrics": {
      type: "choice",
      values: ["true", "false"],
      default: "false",
      help: "whether data plane pods count traffic and tell it at /metrics of their admin port, to whoever reaches that: the counts name every tenant, and so do the controller's metrics of quotas then",
    },
    "state-metrics": {
      type: "choice",
      values: ["true", "false"],
      default: "false",
      help: "whether the leader tells the state of every Gateway, set and route at /metrics/state, to whoever reaches the metrics: it names every tenant",
    },
    tunnels: {
      type: "choice",
      values: ["true", "false"],
      default: "false",
      help: "whether Gateways can choose the data plane tunnel; takes the right to write Secrets and finalizers of Gateways",
    },
    "cloudflared-image": {
      type: "text",
      value: "IMAGE",
      default: DEFAULT_CLOUDFLARED_IMAGE,
      help: "image of cloudflared in data plane pods",
    },
    "cloudflare-api": {
      type: "text",
      value: "URL",
      help: "where the Cloudflare API is; for tests, and for networks that reach it through a proxy of their own",
    },
    "health-address": {
      type: "text",
      value: "ADDRESS:PORT",
      default: "0.0.0.0:8081",
      help: "probes: /healthz and /readyz",
    },
    "metrics-address": {
      type: "text",
      value: "ADDRESS:PORT",
      default: "0.0.0.0:9090",
      help: "Prometheus metrics at /metrics",
    },
    "leader-election": {
      type: "choice",
      values: ["true", "false"],
      default: "true",
      help: "whether several replicas agree on the one that writes",
    },
    "lease-name": { type: "text", value: "NAME", default: "mergeway", help: "name of the Lease" },
    "port-range": {
      type: "text",
      value: "FROM-TO",
      default: "49152-65535",
      help: "ports for XListenerSet entries without one",
    },
    "max-listeners-per-gateway": {
      type: "number",
      value: "N",
      default: 0,
      min: 0,
      max: 1_000_000,
      help: "listeners beyond N are refused with TooManyListeners; 0 means no limit",
    },
    kubeconfig: { type: "text", value: "FILE", help: "how to reach the cluster; as kubectl does without" },
    context: { type: "text", value: "NAME", help: "context of the kubeconfig" },
    "log-format": {
      type: "choice",
      values: ["pretty", "json"],
      default: "pretty",
      help: "how events are logged, on standard error",
    },
  },
  examples: [
    {
      line: "mergeway controller --stream-service mergeway.mergeway-system.svc:18000 --data-plane-image mergeway:latest",
      says: "in a pod of namespace mergeway-system",
    },
  ],
  exits: { 0: "stopped when it was told to", 2: "could not run" },
  async run({ flags }, host) {
    const logger = createLogger(flags["log-format"], host.err, host.now);
    const namespace = flags.namespace ?? host.env["POD_NAMESPACE"];
    if (!namespace)
      throw new CannotRun(
        "the controller's own namespace is not known",
        "give --namespace or set POD_NAMESPACE",
      );
    const image = flags["data-plane-image"] ?? host.env["MERGEWAY_DATA_PLANE_IMAGE"];
    if (!image) throw new CannotRun("no image for data plane pods", "give --data-plane-image");
    const { ControllerMetrics } = await import("../../controller/metrics.ts");
    const { runController } = await import("../../controller/run-controller.ts");
    const metrics = new ControllerMetrics();
    const stream = socketAddress("stream-address", flags["stream-address"]);
    await runController(
      {
        release: host.version,
        controllerName: flags["controller-name"],
        watchNamespaces: flags["watch-namespaces"].split(",").filter((name) => name !== ""),
        namespace,
        identity: host.env["POD_NAME"] ?? hostname(),
        leaderElection: flags["leader-election"] === "true",
        leaseName: flags["lease-name"],
        stream,
        streamService: flags["stream-service"] ?? `mergeway.${namespace}.svc:${stream.port}`,
        dataPlane: flags["data-plane"],
        dataPlaneImage: image,
        dataPlaneMetrics: flags["data-plane-metrics"] === "true",
        stateMetrics: flags["state-metrics"] === "true",
        envoyImage: flags["envoy-image"],
        ...(flags.tunnels === "true" ? { tunnels: tunnelOptions(flags) } : {}),
        healthAddress: flags["health-address"],
        metricsAddress: flags["metrics-address"],
        metrics,
        portRange: portRange(flags["port-range"]),
        maxListenersPerGateway: flags["max-listeners-per-gateway"],
        ...(flags.kubeconfig === undefined ? {} : { kubeconfig: flags.kubeconfig }),
        ...(flags.context === undefined ? {} : { context: flags.context }),
        observer: metrics.observer((level, message, fields) => {
          if (level !== "debug") logger[level](message, fields);
        }),
      },
      host.signal,
    );
    return 0;
  },
});

function tunnelOptions(flags: {
  readonly "cloudflared-image": string;
  readonly "cloudflare-api"?: string | undefined;
}): { readonly cloudflaredImage: string; readonly apiUrl?: string } {
  const apiUrl = flags["cloudflare-api"];
  if (apiUrl !== undefined && !URL.canParse(apiUrl))
    throw new CannotRun(
      `--cloudflare-api ${apiUrl} is not a URL`,
      "for example https://api.cloudflare.com/client/v4",
    );
  return { cloudflaredImage: flags["cloudflared-image"], ...(apiUrl === undefined ? {} : { apiUrl }) };
}

function socketAddress(flag: string, text: string): { readonly address: string; readonly port: number } {
  const [, address, port] = /^\[?([0-9a-zA-Z.:]+?)\]?:(\d{1,5})$/.exec(text) ?? [];
  if (address === undefined)
    throw new CannotRun(`--${flag} ${text} is not ADDRESS:PORT`, "for example 0.0.0.0:18000");
  return { address, port: Number(port) };
}

function portRange(text: string): { readonly from: number; readonly to: number } {
  const [, from, to] = /^(\d{1,5})-(\d{1,5})$/.exec(text) ?? [];
  const range = { from: Number(from), to: Number(to) };
  if (from === undefined || range.from < 1 || range.to > 65535 || range.from > range.to) {
    throw new CannotRun(`--port-range ${text} is not a range of ports`, "for example 49152-65535");
  }
  return range;
}
