import type { ClientAddressPlan } from "../../plan/client-address.ts";
import type { GuardItem, RateLimitCheck } from "../../plan/guard.ts";
import type { ItemId } from "../../plan/plan.ts";
import { admits, parseAddress } from "../networks.ts";
import type { GuardOutcome } from "./explanation.ts";

/** What a guard does with a request of this client; a rate limit is not counted here. */
export function guardOutcome(
  id: ItemId,
  item: GuardItem | undefined,
  client: string | undefined,
): GuardOutcome {
  if (item === undefined) return { id, result: "absent" };
  const { policy, check } = item;
  const guard = { policy, check };
  if (check.type === "rateLimit") return { id, guard, result: "counts" };
  if (check.allow?.length === 0) return { id, guard, result: "refuses" };
  const address = client === undefined ? undefined : parseAddress(client);
  if (address === undefined) return { id, guard, result: "depends" };
  return { id, guard, result: admits(check, address) ? "passes" : "refuses" };
}

export function guardText({ guard, result }: GuardOutcome, client: string | undefined): string {
  if (guard === undefined) return "a policy of the rule cannot be applied: nothing passes";
  const { policy, check } = guard;
  const name = `TrafficPolicy ${policy.namespace}/${policy.name}`;
  if (check.type === "rateLimit") return `${name}: at most ${rateLimitText(check)}`;
  switch (result) {
    case "passes":
      return `${name}: lets ${client} in`;
    case "refuses":
      return check.allow?.length === 0 ? `${name}: lets nobody in` : `${name}: does not let ${client} in`;
    default:
      return `${name}: depends on the address of the client`;
  }
}

export function rateLimitText({ requests, periodMs, burst, key }: RateLimitCheck): string {
  const rate = `${requests} ${requests === 1 ? "request" : "requests"} in ${durationText(periodMs)}`;
  const more = burst === requests ? "" : `, ${burst} at once`;
  const each = { all: "", client: ", for each client address", header: ", for each value of header " }[
    key.type
  ];
  return `${rate}${more}${each}${key.type === "header" ? key.name : ""}`;
}

function durationText(ms: number): string {
  const [size, unit] = UNITS.find(([each]) => ms % each === 0) ?? [1, "ms"];
  return `${ms / size}${unit}`;
}

const UNITS: readonly (readonly [number, string])[] = [
  [3_600_000, "h"],
  [60_000, "m"],
  [1_000, "s"],
];

/** Where a port finds the address of a client. */
export function clientAddressSource({ proxyProtocol, forwardedFor }: ClientAddressPlan): string {
  const peer =
    proxyProtocol === undefined
      ? "the TCP peer"
      : `the PROXY protocol (${proxyProtocol === "required" ? "required" : "where there is a header"})`;
  if (forwardedFor === undefined) return peer;
  const trust =
    "hops" in forwardedFor
      ? `${forwardedFor.hops} trusted ${forwardedFor.hops === 1 ? "hop" : "hops"}`
      : `trusted networks ${listText(forwardedFor.networks)}`;
  return `${peer} and X-Forwarded-For, by ${trust}`;
}

const MOST_SHOWN = 4;

/** A list of networks may be long. */
export function listText(networks: readonly string[]): string {
  if (networks.length === 0) return "nobody";
  const shown = networks.slice(0, MOST_SHOWN).join(", ");
  return networks.length > MOST_SHOWN ? `${shown} … ${networks.length} in all` : shown;
}
