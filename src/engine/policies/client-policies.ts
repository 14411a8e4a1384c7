/**
 * ClientPolicy: how ports treat their clients. Where the address of a client is found, and what a
 * client may send before it is known whom it asks for, holds for a whole port, which listeners of
 * others share or may share tomorrow. It cannot be confined to one set, child or listener, so only
 * a policy of the Gateway itself can say it (GEP-1713, "Policy Attachment": what cannot be confined
 * is rejected).
 */
import type { ClientSettings } from "../../api/client-policy.ts";
import type { Key } from "../../api/key.ts";
import type { Lookup } from "../../graph/lookup.ts";
import type { ClientAddressPlan } from "../../plan/client-address.ts";
import type { ClientLimits } from "../../plan/limits/client-limits.ts";
import { targetKey } from "../foundation/policy-targets.ts";
import type { Failure } from "../foundation/verdict.ts";
import type { Owner } from "../listeners/owners.ts";
import {
  type AttachedPolicies,
  type AttachedPolicy,
  type PolicySettings,
  policyAt,
  type ReadSettings,
} from "./attached-policies.ts";
import { type CertificateDemand, readClientCertificates } from "./client-certificates.ts";
import { readConnectionLimits, readHeaderLimits } from "./client-limits.ts";
import { readNetworks } from "./networks.ts";

export interface ClientPortSettings {
  readonly clientAddress?: ClientAddressPlan;
  readonly headerLimits?: ClientLimits;
  readonly connections?: ClientLimits;
  /** Present and undefined: it cannot be read, and nobody is let in. */
  readonly clientCertificates?: CertificateDemand | undefined;
}

export type ClientPolicies = AttachedPolicies<ClientPortSettings>;

/** Of settings that nobody could read, nobody is trusted to name clients, and none is let in. */
export const CLIENT_SETTINGS: PolicySettings<ClientSettings, ClientPortSettings> = {
  read: readClientSettings,
  closed: { clientCertificates: undefined },
};

type Read = ReturnType<ReadSettings<ClientSettings, ClientPortSettings>>;

/** A limit that cannot be read is left to the data plane, which has one of its own. */
function readClientSettings(written: ClientSettings): Read {
  const { clientAddress, headerLimits, connections, tls } = written;
  const address = readClientAddress(clientAddress);
  const headers = headerLimits && readHeaderLimits(headerLimits);
  const connected = connections && readConnectionLimits(connections);
  const certificates = tls?.clientCertificates && readClientCertificates(tls.clientCertificates);
  const wrong = certificates !== undefined && "problem" in certificates ? certificates : undefined;
  const problem = [address, headers, connected].flatMap((read) =>
    read !== undefined && "problem" in read ? [read.problem] : [],
  )[0];
  return {
    settings: {
      ...address.settings,
      ...(headers === undefined || "problem" in headers ? {} : { headerLimits: headers }),
      ...(connected === undefined || "problem" in connected ? {} : { connections: connected }),
      ...(certificates === undefined
        ? {}
        : { clientCertificates: "problem" in certificates ? undefined : certificates }),
    },
    ...(problem === undefined ? {} : { problem }),
    ...(wrong === undefined ? {} : { problem: `tls.clientCertificates.${wrong.problem}` }),
  };
}

function readClientAddress(clientAddress: ClientSettings["clientAddress"]): Read {
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

/** What the ports of a Gateway allow their clients; undefined: what the data plane does. */
export function clientLimitsAt(
  gateway: Key,
  lookup: Lookup,
  policies: ClientPolicies,
): ClientLimits | undefined {
  const policy = policyAt(targetKey(gateway, undefined), lookup, policies);
  const limits = {
    ...(policy?.overrides?.headerLimits ?? policy?.defaults?.headerLimits),
    ...(policy?.overrides?.connections ?? policy?.defaults?.connections),
  };
  return Object.keys(limits).length === 0 ? undefined : limits;
}

/**
 * Why a policy cannot be attached there. What listeners ask for in their handshakes holds all the
 * same.
 */
export function portsProblem(
  owner: Owner,
  section: string | undefined,
  policy: AttachedPolicy<ClientPortSettings>,
): Failure | undefined {
  if (owner.role === "root" && section === undefined) return undefined;
  const fields = new Set([policy.defaults, policy.overrides].flatMap((each) => Object.keys(each ?? {})));
  const isOfHandshakes = fields.delete("clientCertificates");
  if (fields.size === 0 && isOfHandshakes) return undefined;
  const what = isOfHandshakes ? [...fields].join(" and ") : "a ClientPolicy";
  const message = `${what} holds for whole ports, which other listeners share: attach it to the Gateway itself`;
  return { reason: "NotConfinable", message };
}
