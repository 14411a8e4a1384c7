import { type AuthenticationCheck, isAuthentication } from "../../plan/authentication.ts";
import type { ClientAddressPlan } from "../../plan/client-address.ts";
import type { GuardItem, RateLimitCheck } from "../../plan/guard.ts";
import type { RequestBodyCheck } from "../../plan/limits/request-limits.ts";
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
  if (isAuthentication(check)) return { id, guard, result: "asks" };
  if (check.type !== "addresses") return { id, guard, result: "counts" };
  if (check.allow?.length === 0) return { id, guard, result: "refuses" };
  const address = client === undefined ? undefined : parseAddress(client);
  if (address === undefined) return { id, guard, result: "depends" };
  return { id, guard, result: admits(check, address) ? "passes" : "refuses" };
}

export function guardText({ guard, result }: GuardOutcome, client: string | undefined): string {
  if (guard === undefined) return "a policy or filter of the rule cannot be applied: nothing passes";
  const { policy, check } = guard;
  const name = `${policy.kind ?? "TrafficPolicy"} ${policy.namespace}/${policy.name}`;
  if (isAuthentication(check)) return `${name}: ${authenticationText(check)}`;
  if (check.type !== "addresses") return `${name}: at most ${limitText(check)}`;
  switch (result) {
    case "passes":
      return `${name}: lets ${client} in`;
    case "refuses":
      return check.allow?.length === 0 ? `${name}: lets nobody in` : `${name}: does not let ${client} in`;
    default:
      return `${name}: depends on the address of the client`;
  }
}

/** A limit, as it follows the words `at most`. */
export function limitText(check: RateLimitCheck | RequestBodyCheck): string {
  return check.type === "rateLimit" ? rateLimitText(check) : `a body of ${sizeText(check.maxBytes)}`;
}

function sizeText(bytes: number): string {
  const [size, unit] = SIZES.find(([each]) => bytes >= each && bytes % each === 0) ?? [1, ""];
  return unit === "" ? `${bytes} ${bytes === 1 ? "byte" : "bytes"}` : `${bytes / size}${unit}`;
}

const SIZES: readonly (readonly [number, string])[] = [
  [1024 ** 3, "Gi"],
  [1024 ** 2, "Mi"],
  [1024, "Ki"],
];

/** Nothing of the credentials, only how they are asked for. */
export function authenticationText(check: AuthenticationCheck): string {
  switch (check.type) {
    case "externalAuth":
      return `asks ${check.backend.replace(/^backend:[^:]*:/, "Service ")}${check.protocol === "grpc" ? " over gRPC" : ""}`;
    case "jwt":
      return `needs a token of ${listText(check.issuers.map(({ issuer }) => issuer))}`;
    case "basicAuth":
      return "needs a user and password";
    case "apiKeys": {
      const places = [
        ...check.headers.map((name) => `header ${name}`),
        ...check.queries.map((name) => `query parameter ${name}`),
      ];
      return `needs an API key in ${places.join(" or ")}`;
    }
  }
}

export function rateLimitText({ requests, periodMs, burst, key }: RateLimitCheck): string {
  const rate = `${requests} ${requests === 1 ? "request" : "requests"} in ${shortDuration(periodMs)}`;
  const more = burst === requests ? "" : `, ${burst} at once`;
  const each = { all: "", client: ", for each client address", header: ", for each value of header " }[
    key.type
  ];
  return `${rate}${more}${each}${key.type === "header" ? key.name : ""}`;
}

export function shortDuration(ms: number): string {
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
