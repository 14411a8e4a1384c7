import { isWildcard } from "../../../../plan/hostname.ts";
import type { PortItem } from "../../../../plan/plan.ts";
import type { RedirectAction, RequestMatch } from "../../../../plan/rule.ts";
import { redirectAction } from "../../messages/route.ts";
import type * as proto from "../../wire/proto.ts";
import type { Message } from "../../wire/protobuf.ts";
import { fullPath, pathSubstitution } from "./path-edits.ts";

interface RedirectPlace {
  readonly port: PortItem;
  /** The pattern of the scope: the host of a redirect that names none, if it is exact. */
  readonly scope: string;
}

/** Undefined: Envoy has no such redirect. */
export function redirectOf(
  action: RedirectAction,
  { path }: RequestMatch,
  { port, scope }: RedirectPlace,
): Message<proto.RedirectAction> | undefined {
  const scheme = action.scheme ?? (port.protocol === "http" ? "http" : "https");
  const wanted =
    action.port ?? (action.scheme === undefined ? undefined : wellKnownPort(scheme)) ?? port.port;
  const exact = scope === "" || isWildcard(scope) ? undefined : scope;
  return redirectAction({
    scheme,
    host: action.hostname ?? exact,
    port: wanted === wellKnownPort(scheme) ? undefined : wanted,
    path:
      action.path === undefined
        ? undefined
        : action.path.type === "full"
          ? { full: fullPath(action.path) }
          : pathSubstitution(action.path, path),
    status: action.statusCode,
  });
}

function wellKnownPort(scheme: string): number | undefined {
  if (scheme === "http") return 80;
  return scheme === "https" ? 443 : undefined;
}
