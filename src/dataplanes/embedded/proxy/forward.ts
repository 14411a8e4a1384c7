import { chooseWeighted } from "../../../matching/weighted-choice.ts";
import type { BackendItem } from "../../../plan/backend.ts";
import type { ForwardAction, WeightedBackend } from "../../../plan/rule.ts";
import { bodyOf } from "./collect-body.ts";
import { answerPreflight, isPreflight } from "./cors.ts";
import { Forwarding } from "./forwarding.ts";
import { replyLocally } from "./local-reply.ts";
import { sendMirrors } from "./mirror.ts";
import type { RoutedRequest } from "./routed-request.ts";
import type { Serving } from "./serve-request.ts";
import { buildHead } from "./upstream-request.ts";

/** Sends a request to one of its rule's backends, and copies of it to the mirrors. */
export function forward(serving: Serving, request: RoutedRequest, action: ForwardAction): void {
  if (action.filters.cors !== undefined && isPreflight(request)) {
    answerPreflight(request, action.filters.cors);
    return;
  }
  const chosen = choose(serving, request, action);
  if (chosen === undefined) return;
  const head = buildHead(request, action, chosen);
  const body = bodyOf(serving.limits, request);
  sendMirrors(serving, [action.filters, chosen.entry.filters], { head, body, request });
  new Forwarding(serving, {
    request,
    action,
    entry: chosen.entry,
    backend: chosen.backend,
    head,
    body,
  }).start();
}

function choose(
  serving: Serving,
  request: RoutedRequest,
  action: ForwardAction,
): { readonly entry: WeightedBackend; readonly backend: BackendItem } | undefined {
  const entry = chooseWeighted(action.backends, Math.random);
  request.backend = entry?.backend;
  const backend = entry?.backend === undefined ? undefined : serving.table.get("backend", entry.backend);
  if (entry?.backend === undefined || backend?.refused !== undefined) {
    replyLocally(request, 500, { reason: "InvalidBackend", message: "this route has no usable backend" });
    return undefined;
  }
  if (backend === undefined || backend.endpoints.length === 0) {
    replyLocally(request, 503, { reason: "NoEndpoints", message: "no endpoint of the backend is ready" });
    return undefined;
  }
  return { entry, backend };
}
