/**
 * What each data plane makes of the parts of a plan that come from policies. A new part does not
 * compile without its row here, and docs/reference/policies.md shows them all.
 */
import type { BackendItem } from "../plan/backend.ts";
import type { ClientAddressPlan } from "../plan/client-address.ts";
import type { GuardCheck } from "../plan/guard.ts";
import type { ClientLimits } from "../plan/limits/client-limits.ts";
import type { ListenerTlsPlan } from "../plan/plan.ts";
import type { Filters, ForwardAction, RedirectAction, RespondAction } from "../plan/rule.ts";

export type PolicyPart =
  | GuardCheck["type"]
  | RulePart
  | keyof ClientAddressPlan
  | keyof ClientLimits
  | Extract<keyof ListenerTlsPlan, "clientValidation">
  | BackendPolicyPart;
/** Parts of backends that policies set. */
type BackendPolicyPart = Extract<keyof BackendItem, "balancing" | "persistence" | "limits">;
/** Parts of rules that policies set, as routes can. */
type RulePart =
  | Extract<keyof ForwardAction, "timeouts" | "retry" | "compression">
  | RedirectAction["type"]
  | RespondAction["type"]
  | FilterPart;
type FilterPart = Extract<keyof Filters, "requestHeaders" | "responseHeaders" | "cors">;
export type PolicyDataPlane = "embedded" | "Envoy" | "tunnel";

/** `yes`, or what it does instead. */
export const POLICY_SUPPORT: Readonly<Record<PolicyPart, Readonly<Record<PolicyDataPlane, string>>>> = {
  addresses: { embedded: "yes", Envoy: "yes", tunnel: "yes" },
  rateLimit: { embedded: "yes", Envoy: "yes", tunnel: "yes" },
  requestBody: { embedded: "yes", Envoy: "yes", tunnel: "yes" },
  timeouts: { embedded: "yes", Envoy: "yes", tunnel: "yes" },
  redirect: { embedded: "yes", Envoy: "yes", tunnel: "yes" },
  apiKeys: { embedded: "yes", Envoy: "yes", tunnel: "yes" },
  basicAuth: { embedded: "yes", Envoy: "yes", tunnel: "yes" },
  jwt: { embedded: "yes", Envoy: "yes", tunnel: "yes" },
  externalAuth: { embedded: "yes", Envoy: "yes", tunnel: "yes" },
  requestHeaders: { embedded: "yes", Envoy: "yes", tunnel: "yes" },
  responseHeaders: { embedded: "yes", Envoy: "yes", tunnel: "yes" },
  retry: { embedded: "yes", Envoy: "yes", tunnel: "yes" },
  cors: { embedded: "yes", Envoy: "yes", tunnel: "yes" },
  compression: { embedded: "yes", Envoy: "yes", tunnel: "yes" },
  respond: { embedded: "yes", Envoy: "yes", tunnel: "yes" },
  balancing: { embedded: "yes", Envoy: "yes", tunnel: "yes" },
  persistence: { embedded: "yes", Envoy: "yes", tunnel: "yes" },
  limits: { embedded: "yes", Envoy: "yes", tunnel: "yes" },
  proxyProtocol: { embedded: "yes", Envoy: "yes", tunnel: "no effect" },
  forwardedFor: { embedded: "yes", Envoy: "yes", tunnel: "no effect" },
  headerBytes: { embedded: "yes", Envoy: "yes", tunnel: "no effect" },
  headerCount: { embedded: "yes", Envoy: "yes", tunnel: "no effect" },
  headerTimeoutMs: { embedded: "yes", Envoy: "yes", tunnel: "no effect" },
  idleMs: { embedded: "yes", Envoy: "yes", tunnel: "no effect" },
  concurrentStreams: { embedded: "yes", Envoy: "yes", tunnel: "no effect" },
  clientValidation: {
    embedded: "yes",
    Envoy: "yes; at a set or listener for listeners with a hostname",
    tunnel: "refused",
  },
};
