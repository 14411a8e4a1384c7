/**
 * Where Mergeway means to judge otherwise than an API server, and why. Everything that is not in
 * this list is a bug. The Gateway API's own kinds have no entry: with the same CRDs both must agree
 * on all of it. (The fields of child Gateways, which no CRD has yet, are switched off for this
 * comparison.)
 */
import type { Difference } from "./compare.ts";

interface Intended {
  readonly reason: string;
  readonly isIt: (difference: Difference) => boolean;
}

const CORE = new Set(["Namespace", "Service", "EndpointSlice", "Secret", "ConfigMap"]);

const INTENDED: readonly Intended[] = [
  {
    reason: "EndpointSlices of files may point at loopback: standalone, that is where backends are",
    isIt: ({ kind, ours, server }) =>
      kind === "EndpointSlice" &&
      ours === "accepted" &&
      complaints(server).every((one) => /may not be in the (loopback|link-local)/.test(one)),
  },
  {
    reason: "EndpointSlices with ports that do not exist are refused: nobody can connect to them",
    isIt: ({ kind, ours, server }) =>
      kind === "EndpointSlice" &&
      server === "accepted" &&
      /^ports\[\d+\]\.port schema\/(minimum|maximum)/.test(ours),
  },
  {
    reason: "fields of Kubernetes' own kinds that Mergeway does not read are not checked",
    isIt: ({ kind, ours, server }) => CORE.has(kind) && ours === "accepted" && /unknown field "/.test(server),
  },
  {
    reason: "which addresses a Service may have is decided where they are assigned",
    isIt: ({ kind, ours, server }) =>
      kind === "Service" &&
      ours === "accepted" &&
      complaints(server).every((one) => /spec\.clusterIPs?\b/.test(one)),
  },
  {
    reason: "null is no entry of a list, although Go reads it as an empty one",
    isIt: ({ kind, ours, server }) =>
      CORE.has(kind) && server === "accepted" && /null is not an object/.test(ours),
  },
  {
    reason: "a list is no text, although Go reads one of numbers as bytes",
    isIt: ({ kind, ours, server }) =>
      (kind === "Secret" || kind === "ConfigMap") &&
      server === "accepted" &&
      /a list of \d+ is not a string/.test(ours),
  },
];

/** The reason of a difference that is meant. */
export function intendedDifference(difference: Difference): string | undefined {
  return INTENDED.find(({ isIt }) => isIt(difference))?.reason;
}

/**
 * What the server has against a document, one by one: `X "n" is invalid: [a, b]` or without
 * brackets when it is one thing.
 */
function complaints(message: string): readonly string[] {
  const [, list = ""] = /^.*? is invalid: (.*)$/s.exec(message) ?? [];
  return list.replace(/^\[|\]$/g, "").split(/, (?=[a-z]+(?:\.|\[)[^ ]*: )/);
}
