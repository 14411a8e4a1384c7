import { readAuthorities, readKeyPair } from "../../src/certificates/read.ts";
import { Engine } from "../../src/engine/engine.ts";
import { DEFAULT_CONTROLLER, DEFAULT_PORT_RANGE } from "../../src/engine/foundation/settings.ts";

export function makeEngine(): Engine {
  return new Engine({
    controllerName: DEFAULT_CONTROLLER,
    adoptUnknownClasses: true,
    assumeProgrammed: true,
    features: new Set(["HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute"]),
    portRange: DEFAULT_PORT_RANGE,
    maxListenersPerGateway: 0,
    readKeyPair,
    readAuthorities,
  });
}
