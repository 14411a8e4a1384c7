import type { DataPlaneName } from "../../api/gateway-parameters.ts";
import type { Key } from "../../api/key.ts";
import type { PrivateKey } from "../../plan/certificate.ts";

/**
 * What the engine is told once, when it is made. Everything else reaches it as a resource or a
 * fact.
 */
export interface EngineSettings {
  readonly controllerName: string;
  /**
   * Serve Gateways whose GatewayClass is not there at all: right for a folder of YAML, wrong for a
   * cluster.
   */
  readonly adoptUnknownClasses: boolean;
  /** Count every accepted item as programmed: for computing a status without a data plane. */
  readonly assumeProgrammed: boolean;
  /**
   * What the data plane serves, by the feature names of the conformance suite. Rules of routes are
   * compiled once with these, for every Gateway: data planes differ only in the listeners that they
   * serve.
   */
  readonly features: ReadonlySet<string>;
  /**
   * What each data plane serves, where Gateways choose their data plane by GatewayParameters.
   * Without it, they cannot choose.
   */
  readonly dataPlanes?: Readonly<Partial<Record<DataPlaneName, ReadonlySet<string>>>>;
  /**
   * Ports that data planes keep for themselves, on the same addresses as their listeners: no
   * listener may have one.
   */
  readonly reservedPorts?: { readonly from: number; readonly to: number };
  /** Where an XListenerSet entry without a port gets one from. */
  readonly portRange: { readonly from: number; readonly to: number };
  /**
   * Listeners beyond this number, in order of precedence, are refused with TooManyListeners; 0
   * means no limit.
   */
  readonly maxListenersPerGateway: number;
  /**
   * Why no backend may have an endpoint there, as the end of a sentence; undefined when it may. The
   * port is unknown where an EndpointSlice names none. Must be a pure function of its arguments.
   */
  readonly refusedEndpoint?: (address: string, port: number | undefined) => string | undefined;
  /**
   * A reference under which the Gateway's owner finds who has a hostname there. It must tell a
   * tenant nothing, and be the same for the same arguments. Without it, messages have none.
   */
  readonly referenceOf?: (gateway: Key, hostname: string) => string;
  /** The engine itself parses no X.509. Both must be pure functions of their arguments. */
  readonly readKeyPair: (certificate: string, key: string) => TlsKeyPair | { readonly problem: string };
  readonly readAuthorities: (bundle: string) => { readonly pem: string } | { readonly problem: string };
}

/** What the data plane that a Gateway has chosen serves. */
export function featuresOf(settings: EngineSettings, chosen: DataPlaneName | undefined): ReadonlySet<string> {
  return (chosen === undefined ? undefined : settings.dataPlanes?.[chosen]) ?? settings.features;
}

export function isReserved({ reservedPorts }: EngineSettings, port: number): boolean {
  return reservedPorts !== undefined && port >= reservedPorts.from && port <= reservedPorts.to;
}

export interface TlsKeyPair {
  /** PEM, leaf first. */
  readonly chain: string;
  readonly key: PrivateKey;
  readonly names: readonly string[];
  readonly notAfter: string;
}

export const DEFAULT_CONTROLLER = "mergeway.dev/controller";
export const DEFAULT_PORT_RANGE: EngineSettings["portRange"] = { from: 49152, to: 65535 };
