import type { Readable } from "node:stream";
import type { Filters } from "../../../plan/rule.ts";
import type { TenantBudget } from "../limits/tenant-budgets.ts";
import type { RequestBody } from "../message/request-body.ts";
import { cleanTrailers, requestTrailerTest } from "../message/trailers.ts";
import { defaultTimeouts } from "../upstream/answer-timeouts.ts";
import type { UpstreamHandler } from "../upstream/upstream.ts";
import type { RoutedRequest } from "./routed-request.ts";
import type { Serving } from "./serve-request.ts";
import type { RequestHead } from "./upstream-request.ts";

/**
 * Copies of the request, sent and forgotten: no answer, failure or slowness of a mirror reaches the
 * client. A copy may outlive its request, and counts as one of the tenant's; where there is no room
 * for it, it is not sent.
 */
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
      const endpoint = serving.upstreams.order(backend, copy.request)[0];
      const { budget } = copy.request;
      if (endpoint === undefined || budget?.isFull === true || budget?.takeRequest() === false) continue;
      const protocol = backend.protocol === "h2c" ? "h2" : copy.head.protocol;
      const body = copy.body?.mirror();
      serving.upstreams.to(backend, endpoint, protocol).send(
        {
          ...copy.head,
          headers: copy.head.headers.copy(),
          scheme: backend.tls === undefined ? "http" : "https",
          body,
          timeouts: defaultTimeouts(serving.limits),
          trailers: () =>
            cleanTrailers(copy.request.exchange.trailers(), requestTrailerTest(filters, copy.request.hides)),
        },
        budget === undefined ? forgetful : forgetfulOf(budget, body),
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

/** A copy whose body is aborted is dropped silently. */
function forgetfulOf(budget: TenantBudget, body: Readable | undefined): UpstreamHandler {
  let counts = true;
  const giveBack = (): void => {
    if (counts) budget.giveBackRequest();
    counts = false;
  };
  body?.once("close", () => {
    if (!body.readableEnded) giveBack();
  });
  return {
    ...forgetful,
    onEnd: giveBack,
    onSwitch: (_headers, stream) => {
      stream.destroy();
      giveBack();
    },
    onFailure: giveBack,
  };
}
