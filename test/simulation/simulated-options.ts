import type { ControllerOptions } from "../../src/controller/controller-options.ts";
import type { StateView } from "../../src/status/metrics/state-snapshot.ts";

export const CONTROLLER_NAME = "mergeway.dev/controller";

/** The options of a simulated controller, as the chart gives them. */
export function simulatedOptions(
  identity: string,
  onLeading: (isLeading: boolean) => void = () => {},
  onState: (view: StateView) => void = () => {},
): ControllerOptions {
  return {
    release: "simulated",
    controllerName: CONTROLLER_NAME,
    watchNamespaces: [],
    namespace: "mergeway-system",
    identity,
    leaderElection: true,
    leaseName: "mergeway",
    stream: { address: "::", port: 18000 },
    streamService: "mergeway.mergeway-system.svc:18000",
    dataPlane: "embedded",
    dataPlaneImage: "image",
    envoyImage: "image",
    dataPlaneMetrics: false,
    stateMetrics: true,
    healthAddress: "",
    metricsAddress: "",
    portRange: { from: 49152, to: 65535 },
    maxListenersPerGateway: 1_000,
    observer: {},
    metrics: {
      observer: () => ({}),
      read: () => {},
      showState: onState,
      replicas: () => {},
      refused: () => {},
      propagated: () => {},
      infrastructureFailed: () => {},
      leading: onLeading,
      timed: (step) => step(),
      exposition: async () => "",
      serve: async () => {
        throw new Error("a simulated controller opens no ports");
      },
    },
  };
}

/** No secret is needed here. */
export function referenceOf(gateway: string, hostname: string): string {
  return `${gateway} ${hostname}`;
}
