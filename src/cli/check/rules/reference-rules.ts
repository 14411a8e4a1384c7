/** Rules about references: missing grants, backends and policies. */
import type { CheckRule, Problem } from "./finding.ts";
import { attachedListeners, keyOfRef, lacksGrant } from "./places.ts";

const GRANT =
  "Add a ReferenceGrant in that namespace. Grants are not inherited: one for the Gateway does not serve its sets.";

export const missingGrant: CheckRule = {
  id: "missing-grant",
  severity: "error",
  summary: "A reference into another namespace that no ReferenceGrant permits.",
  *find({ state, workspace: { engine, resources } }) {
    for (const { listener, at, path } of attachedListeners(state)) {
      if (!lacksGrant(listener)) continue;
      const message = `listener ${listener.section}: ${listener.unresolved?.message ?? listener.message}`;
      yield { at, path: [...path, "tls"], message, remedy: GRANT };
    }
    for (const [key] of resources) {
      const verdict = engine.verdict(key);
      if (verdict?.type !== "route") continue;
      const found = verdict.parents
        .flatMap(({ conditions }) => conditions)
        .find(
          ({ type, status, reason }) =>
            type === "ResolvedRefs" && status === "False" && reason === "RefNotPermitted",
        );
      if (found !== undefined)
        yield { at: key, path: ["spec", "rules"], message: found.message, remedy: GRANT };
    }
  },
};

export const routeReference: CheckRule = {
  id: "route-reference",
  severity: "error",
  summary: "A backend of a route does not exist or cannot be used: its share of the requests gets 500.",
  *find({ workspace: { engine, resources } }) {
    for (const [key] of resources) {
      const verdict = engine.verdict(key);
      if (verdict?.type !== "route") continue;
      const found = verdict.parents
        .flatMap(({ conditions }) => conditions)
        .find(
          ({ type, status, reason }) =>
            type === "ResolvedRefs" && status === "False" && reason !== "RefNotPermitted",
        );
      if (found === undefined) continue;
      yield {
        at: key,
        path: ["spec", "rules"],
        message: `${found.reason}: ${found.message}; its requests are answered with 500`,
        remedy: "Add the Service, or correct name, namespace and port of the backendRef.",
      };
    }
  },
};

/** Manifests often have no EndpointSlices, since a cluster makes them: then this says nothing. */
export const noEndpoints: CheckRule = {
  id: "no-endpoints",
  severity: "info",
  summary:
    "A Service that a route uses has no ready endpoint (only where EndpointSlices are among the manifests).",
  *find({ state, workspace: { resources } }) {
    if (!resources.values().some(({ kind }) => kind === "EndpointSlice")) return;
    const reported = new Set<string>();
    for (const { listener } of attachedListeners(state)) {
      for (const route of listener.routes) {
        for (const backend of route.backends) {
          const id = `${keyOfRef(route)}|${backend.namespace}/${backend.name}:${backend.port}`;
          if (backend.endpoints !== 0 || reported.has(id)) continue;
          reported.add(id);
          const problem: Problem = {
            at: keyOfRef(route),
            path: ["spec", "rules"],
            message: `Service ${backend.namespace}/${backend.name}, port ${backend.port}, has no ready endpoint: requests get 503`,
            remedy: "Add an EndpointSlice with the label kubernetes.io/service-name and a ready endpoint.",
          };
          yield problem;
        }
      }
    }
  },
};

export const policyNotAccepted: CheckRule = {
  id: "policy-not-accepted",
  severity: "error",
  summary:
    "A BackendTLSPolicy is not accepted, or something it refers to cannot be used: its backends get no traffic.",
  *find({ workspace: { engine, resources } }) {
    for (const [key, { kind }] of resources) {
      const verdict = engine.verdict(key);
      if (kind !== "BackendTLSPolicy" || verdict?.type !== "policy") continue;
      const wrong = verdict.ancestors[0]?.conditions.filter(({ status }) => status === "False") ?? [];
      if (wrong.length === 0) continue;
      yield {
        at: key,
        path: ["spec"],
        message: wrong.map(({ reason, message }) => `${reason}: ${message}`).join("; "),
        remedy: "Mend what the message says; until then requests to its backends are answered with 500.",
      };
    }
  },
};
