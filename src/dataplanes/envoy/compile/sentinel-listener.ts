import { resource, type XdsResource } from "../ads/resource.ts";
import { httpManager } from "../messages/http-manager.ts";
import { filterChain, tcpListener } from "../messages/listener.ts";
import { commonHttp } from "./http-listener.ts";
import { SENTINEL_LISTENER } from "./names.ts";

/**
 * A listener that Envoy always has and that never opens a socket. Envoy gives a new listener none
 * of the scopes that it received before, so the subscription of scopes must never lose its last
 * listener. With this one there from the beginning, every port opens with all of its scopes.
 */
export function sentinelListener(): XdsResource {
  const filter = httpManager({ ...commonHttp, statPrefix: "sentinel", early: [], trust: { type: "nobody" } });
  const chains = [filterChain({ name: "sentinel", serverNames: [], tls: false, filter })];
  const shape = {
    name: SENTINEL_LISTENER,
    address: "127.0.0.1",
    port: 1,
    chains,
    inspectsTls: false,
    bound: false,
  };
  return resource("listener", SENTINEL_LISTENER, tcpListener(shape));
}
