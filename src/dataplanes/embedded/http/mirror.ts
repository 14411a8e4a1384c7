import type { Filters } from "../../../plan/rule.ts";
import type { UpstreamHandler } from "../upstream/upstream.ts";
import { defaultTimeouts } from "./answer-timeouts.ts";
import type { RequestBody } from "./request-body.ts";
import type { RoutedRequest } from "./routed-request.ts";
import type { Serving } from "./serve-request.ts";
import { cleanTrailers, requestTrailerTest } from "./trailers.ts";
import type { RequestHead } from "./upstream-request.ts";

/** Copies of the request, sent and forgotten: no answer, failure or slowness of a mirror reaches the client. */
export function sendMirrors(
  serving: Serving,
  filters: readonly Filters[],
  copy: {
    readonly head: RequestHead;
    readonly body: RequestBody | undefined;
    readonly request: RoutedRequest;
  },
): void {
  if (copy.head.websocket) return;
  for (const { mirrors } of filters) {
    for (const mirror of mirrors ?? []) {
      if (mirror.backend === undefined || Math.random() * mirror.denominator >= mirror.numerator) continue;
      const backend = serving.table.get("backend", mirror.backend);
      if (backend === undefined || backend.refused !== undefined) continue;
      const endpoint = serving.upstreams.order(backend)[0];
      if (endpoint === undefined) continue;
      const protocol = backend.protocol === "h2c" ? "h2" : copy.head.protocol;
      serving.upstreams.to(backend, endpoint, protocol).send(
        {
          ...copy.head,
          headers: copy.head.headers.copy(),
          scheme: backend.tls === undefined ? "http" : "https",
          body: copy.body?.mirror(),
          timeouts: defaultTimeouts(serving.limits),
          trailers: () => cleanTrailers(copy.request.exchange.trailers(), requestTrailerTest(filters)),
        },
        forgetful,
      );
    }
  }
}

const forgetful: UpstreamHandler = {
  onInterim: () => {},
  onAnswer: () => {},
  onData: () => {},
  onEnd: () => {},
  onSwitch: (_headers, stream) => stream.destroy(),
  onFailure: () => {},
};
