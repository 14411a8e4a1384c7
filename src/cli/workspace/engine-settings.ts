import { readAuthorities, readKeyPair } from "../../certificates/read.ts";
import {
  DEFAULT_CONTROLLER,
  DEFAULT_PORT_RANGE,
  type EngineSettings,
} from "../../engine/foundation/settings.ts";

/** Engine settings outside of a cluster: a folder of YAML needs no GatewayClass. */
export function standaloneSettings(
  own: Pick<EngineSettings, "features" | "assumeProgrammed" | "refusedEndpoint">,
): EngineSettings {
  return {
    controllerName: DEFAULT_CONTROLLER,
    adoptUnknownClasses: true,
    portRange: DEFAULT_PORT_RANGE,
    maxListenersPerGateway: 0,
    readKeyPair,
    readAuthorities,
    ...own,
  };
}
