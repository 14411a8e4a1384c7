/**
 * ClientPolicy: how ports treat their clients. Where the address of a client is found holds for a
 * whole port, which listeners of others share or may share tomorrow. It cannot be confined to one
 * set, child or listener, so only a policy of the Gateway itself can say it (GEP-1713, "Policy
 * Attachment": what cannot be confined is rejected).
 */
import type { ClientSettings } from "../../api/client-policy.ts";
import type { Key } from "../../api/key.ts";
import type { Lookup } from "../../graph/lookup.ts";
import type { ClientAddressPlan } from "../../plan/client-address.ts";
import { targetKey } from "../foundation/policy-targets.ts";
import type { Failure } from "../foundation/verdict.ts";
import type { Owner } from "../listeners/owners.ts";
import {
  type AttachedPolicies,
  type PolicySettings,
  policyAt,
  type ReadSettings,
} from "./attached-policies.ts";
import { readNetworks } from "./networks.ts";

export interface ClientPortSettings {
  readonly clientAddress?: ClientAddressPlan;
}

export type ClientPolicies = AttachedPolicies<ClientPortSettings>;

/** Of settings that nobody could read, nobody is trusted to name clients. */
export const CLIENT_SETTINGS: PolicySettings<ClientSettings, ClientPortSettings> = {
  read: readClientSettings,
  closed: {},
};

type Read = ReturnType<ReadSettings<ClientSettings, ClientPortSettings>>;

function readClientSettings({ clientAddress }: ClientSettings): Read {
  if (clientAddress === undefined) return { settings: {} };
  const { proxyProtocol, forwardedFor } = clientAddress;
  // A value that is not known is read as the strictest.
  const proxy =
    proxyProtocol === undefined
      ? {}
      : { proxyProtocol: proxyProtocol === "Optional" ? ("optional" as const) : ("required" as const) };
  const problem =
    proxyProtocol === undefined || proxyProtocol === "Optional" || proxyProtocol === "Required"
      ? {}
      : { problem: `clientAddress.proxyProtocol: ${JSON.stringify(proxyProtocol)} is not known` };
  if (forwardedFor?.trustedHops !== undefined) {
    const hops = forwardedFor.trustedHops;
    return { settings: { clientAddress: { ...proxy, forwardedFor: { hops } } }, ...problem };
  }
  if (forwardedFor?.trustedNetworks === undefined) return { settings: { clientAddress: proxy }, ...problem };
  const read = readNetworks(forwardedFor.trustedNetworks);
  if ("problem" in read) {
    // Nobody is trusted, rather than everybody.
    const settings = { clientAddress: proxy };
    return { settings, problem: `clientAddress.forwardedFor.trustedNetworks: ${read.problem}`, ...problem };
  }
  return { settings: { clientAddress: { ...proxy, forwardedFor: { networks: read.networks } } }, ...problem };
}

/** How the ports of a Gateway find the address of a client; undefined: it is the TCP peer's. */
export function clientAddressAt(
  gateway: Key,
  lookup: Lookup,
  policies: ClientPolicies,
): ClientAddressPlan | undefined {
  const policy = policyAt(targetKey(gateway, undefined), lookup, policies);
  return policy?.overrides?.clientAddress ?? policy?.defaults?.clientAddress;
}

/** Why a policy about ports cannot be attached there. */
export function portsProblem(owner: Owner, section: string | undefined): Failure | undefined {
  if (owner.role === "root" && section === undefined) return undefined;
  const message =
    "clientAddress holds for whole ports, which other listeners share: attach the policy to the Gateway itself";
  return { reason: "NotConfinable", message };
}
