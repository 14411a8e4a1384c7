import { readAuthorities, readKeyPair } from "../../src/certificates/read.ts";
import {
  DEFAULT_CONTROLLER,
  DEFAULT_PORT_RANGE,
  type EngineSettings,
} from "../../src/engine/foundation/settings.ts";

const FEATURES: readonly string[] = [
  "HTTPRoute",
  "GRPCRoute",
  "TLSRoute",
  "TCPRoute",
  "UDPRoute",
  "TLSRouteModeTerminate",
  "HTTPRouteResponseHeaderModification",
  "HTTPRouteRequestMirror",
  "HTTPRouteCORS",
  "HTTPRouteRequestTimeout",
  "HTTPRouteBackendTimeout",
];

/** A data plane that serves nearly everything and confirms at once. */
export const TEST_SETTINGS: EngineSettings = {
  controllerName: DEFAULT_CONTROLLER,
  adoptUnknownClasses: true,
  assumeProgrammed: true,
  features: new Set(FEATURES),
  portRange: DEFAULT_PORT_RANGE,
  maxListenersPerGateway: 0,
  readKeyPair,
  readAuthorities,
};
