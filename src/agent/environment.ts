/**
 * The environment variables of data plane pods. The controller writes them into the pods it makes
 * (src/infra/pods), and `mergeway dataplane` reads them there.
 */

import type { TelemetrySettings } from "../dataplanes/telemetry/telemetry-settings.ts";

export interface PodSettings {
  readonly dataPlane: string;
  /** `host:port` of the controller's plan stream. */
  readonly controller: string;
  /** `namespace/name`. */
  readonly gateway: string;
  /** PEM. */
  readonly authority: string;
  readonly tokenFile: string;
  readonly stateDirectory: string;
  readonly adminAddress: string;
  /** What is told of requests, and to whom. */
  readonly telemetry: TelemetrySettings;
  readonly drainSeconds: number;
  /** Whether traffic is counted and told to whoever asks: the counts name every tenant. */
  readonly metrics: boolean;
  readonly pod: string;
  /** Of the embedded data plane, also behind a tunnel. Zero: the main thread serves. */
  readonly workers: number;
  readonly tunnelPort: number;
  /** Where cloudflared says how it is. */
  readonly connectorPort: number;
  /** What agent and Envoy share. */
  readonly envoyDirectory: string;
  /** Where Envoy counts requests for the agent. */
  readonly trafficDirectory: string;
  readonly readinessPort: number;
  readonly drainToken: string;
  readonly debug: boolean;
}

interface Variable<T> {
  readonly name: string;
  readonly read: (text: string) => T;
  /** When it is not set. A variable without a default must be set, and not to nothing. */
  readonly default?: T;
}

const asText = (text: string): string => text;
const asTelemetry = (text: string): TelemetrySettings => JSON.parse(text) as TelemetrySettings;
const asFlag = (text: string): boolean => text === "true";

export const POD_VARIABLES: { readonly [Name in keyof PodSettings]: Variable<PodSettings[Name]> } = {
  dataPlane: { name: "MERGEWAY_DATA_PLANE", read: asText, default: "embedded" },
  controller: { name: "MERGEWAY_CONTROLLER", read: asText },
  gateway: { name: "MERGEWAY_GATEWAY", read: asText },
  authority: { name: "MERGEWAY_AUTHORITY", read: asText },
  tokenFile: { name: "MERGEWAY_TOKEN_FILE", read: asText },
  stateDirectory: { name: "MERGEWAY_STATE_DIR", read: asText },
  adminAddress: { name: "MERGEWAY_ADMIN_ADDRESS", read: asText, default: "127.0.0.1:19901" },
  telemetry: { name: "MERGEWAY_TELEMETRY", read: asTelemetry, default: {} },
  drainSeconds: { name: "MERGEWAY_DRAIN_SECONDS", read: Number, default: 30 },
  metrics: { name: "MERGEWAY_METRICS", read: asFlag, default: false },
  pod: { name: "MERGEWAY_POD", read: asText, default: "pod" },
  workers: { name: "MERGEWAY_WORKERS", read: Number, default: 0 },
  tunnelPort: { name: "MERGEWAY_TUNNEL_PORT", read: Number },
  connectorPort: { name: "MERGEWAY_CONNECTOR_PORT", read: Number },
  envoyDirectory: { name: "MERGEWAY_ENVOY_DIR", read: asText },
  trafficDirectory: { name: "MERGEWAY_TRAFFIC_DIR", read: asText },
  readinessPort: { name: "MERGEWAY_READINESS_PORT", read: Number },
  drainToken: { name: "MERGEWAY_DRAIN_TOKEN", read: asText, default: "" },
  // A person sets it, to whatever comes to mind.
  debug: { name: "MERGEWAY_DEBUG", read: Boolean, default: false },
};

/** The variables that tell a pod these settings, in their order. */
export function podEnvironment(settings: Partial<PodSettings>): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(settings).map(([setting, value]) => [
      POD_VARIABLES[setting as keyof PodSettings].name,
      typeof value === "object" ? JSON.stringify(value) : String(value),
    ]),
  );
}

/** Undefined when the variable must be set and is not. */
export function readPodSetting<Name extends keyof PodSettings>(
  environment: Readonly<Record<string, string | undefined>>,
  setting: Name,
): PodSettings[Name] | undefined {
  const { name, read, default: unset } = POD_VARIABLES[setting];
  const text = environment[name];
  if (unset !== undefined) return text === undefined ? unset : read(text);
  return text ? read(text) : undefined;
}
