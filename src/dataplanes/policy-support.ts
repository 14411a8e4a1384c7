/**
 * What each data plane makes of the parts of a plan that come from policies. A new part does not
 * compile without its row here, and docs/reference/policies.md shows them all.
 */
import type { ClientAddressPlan } from "../plan/client-address.ts";
import type { GuardCheck } from "../plan/guard.ts";

export type PolicyPart = GuardCheck["type"] | keyof ClientAddressPlan;
export type PolicyDataPlane = "embedded" | "Envoy" | "tunnel";

/** `yes`, or what it does instead. */
export const POLICY_SUPPORT: Readonly<Record<PolicyPart, Readonly<Record<PolicyDataPlane, string>>>> = {
  addresses: { embedded: "yes", Envoy: "yes", tunnel: "yes" },
  rateLimit: { embedded: "yes", Envoy: "yes", tunnel: "yes" },
  proxyProtocol: { embedded: "yes", Envoy: "yes", tunnel: "no effect" },
  forwardedFor: { embedded: "yes", Envoy: "yes", tunnel: "no effect" },
};
