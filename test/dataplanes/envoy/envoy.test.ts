import { describeDataPlane } from "../contract/contract.ts";
import { createEnvoy } from "../support/envoy-plane.ts";

// Envoy's reading of HTTP is Envoy's own matter; idle connections stay until its drain time is
// over; it passes the end of an upgraded HTTP/2 stream on only when both sides have ended; and it
// closes connections whose PROXY protocol header names no address family.
describeDataPlane("Envoy", (options) => createEnvoy(options), {
  ownHttp: false,
  endsIdle: false,
  endsUpgrades: false,
  allInterim: false,
  servesUnspecified: false,
  resetCodes: false,
});
