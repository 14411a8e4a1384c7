/**
 * The walk of a NACK from a real Envoy to the status of the route that it hits, and of no other.
 */

import { afterEach, expect, test } from "vitest";
import { admit } from "../../../../src/api/admission/admit.ts";
import { keyOf } from "../../../../src/api/key.ts";
import { LiveGateway } from "../../../../src/cli/run/live-gateway.ts";
import type { DataPlane } from "../../../../src/dataplanes/dataplane.ts";
import type { EnvoyDataPlane } from "../../../../src/dataplanes/envoy/envoy-data-plane.ts";
import type { Verdict } from "../../../../src/engine/foundation/verdict.ts";
import type { PlanItem } from "../../../../src/plan/plan.ts";
import type { ResourceChange } from "../../../../src/sources/source.ts";
import { createEnvoy } from "../../support/envoy-plane.ts";
import { lastingPort } from "../../support/lasting-port.ts";

const API = "gateway.networking.k8s.io/v1";
const open: EnvoyDataPlane[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((envoy) => envoy.close({ graceMs: 0 })));
});

/**
 * Gives Envoy rules of routes called `bad` with a header that it refuses, as a check with a hole
 * would.
 */
function spoiling(envoy: EnvoyDataPlane): DataPlane {
  const spoiled = (item: PlanItem): PlanItem => {
    if (item.type !== "host") return item;
    const rules = item.rules.map((rule) => {
      if (rule.origin.name !== "bad" || rule.action.type !== "redirect") return rule;
      const responseHeaders = [{ op: "set" as const, name: "x-long", value: "x".repeat(20_000) }];
      return { ...rule, action: { ...rule.action, filters: { responseHeaders } } };
    });
    return { ...item, rules };
  };
  return {
    features: envoy.features,
    apply: ({ upserts, removes }) => envoy.apply({ upserts: upserts.map(spoiled), removes }),
    onReport: (handler) => envoy.onReport(handler),
    close: () => envoy.close(),
  };
}

function route(namespace: string, name: string, path: string): ResourceChange {
  const filters = [{ type: "RequestRedirect", requestRedirect: { hostname: `${namespace}.secret.example` } }];
  return read({
    apiVersion: API,
    kind: "HTTPRoute",
    metadata: { name, namespace },
    spec: {
      parentRefs: [{ name: "edge", namespace: "infra" }],
      hostnames: ["shop.example"],
      rules: [{ matches: [{ path: { type: "PathPrefix", value: path } }], filters }],
    },
  });
}

function read(manifest: object): ResourceChange {
  const { resource, errors } = admit(manifest);
  if (resource === undefined) throw new Error(JSON.stringify(errors));
  return { key: keyOf(resource), resource };
}

const gateway = read({
  apiVersion: API,
  kind: "Gateway",
  metadata: { name: "edge", namespace: "infra" },
  spec: {
    gatewayClassName: "any",
    listeners: [{ name: "http", port: 80, protocol: "HTTP", allowedRoutes: { namespaces: { from: "All" } } }],
  },
});

test("a NACK is reported in the status of the route, of no other object, and goes when the route is corrected", async () => {
  const at = await lastingPort();
  const logged: string[] = [];
  const envoy = createEnvoy(
    { bind: { address: "127.0.0.1", portMap: () => at } },
    { onLog: (line) => logged.push(line) },
  );
  open.push(envoy);
  const live = new LiveGateway(spoiling(envoy), () => ({ addresses: [] }));
  const conditionsOf = (key: string): readonly Verdict[] => {
    const verdict = live.engine.verdict(key);
    return verdict?.type === "route" ? (verdict.parents[0]?.conditions ?? []) : [];
  };
  const refusal = (key: string): Verdict | undefined =>
    conditionsOf(key).find(({ type }) => type === "mergeway.dev/Programmed");
  live.take([gateway, route("team-a", "bad", "/bad"), route("team-b", "good", "/good")]);
  await expect
    .poll(() => refusal("HTTPRoute/team-a/bad"), { timeout: 20_000 })
    .toEqual({
      type: "mergeway.dev/Programmed",
      status: "False",
      reason: "Refused",
      message:
        "the data plane refuses rules[0].filters (ResponseHeaderModifier): requests that the rule matches are answered with 500",
    });
  expect(conditionsOf("HTTPRoute/team-b/good").map(({ type, status }) => `${type}=${status}`)).toEqual([
    "Accepted=True",
    "ResolvedRefs=True",
  ]);
  await live.settled;
  const [listener] = live.state().gateways[0]?.owners[0]?.listeners ?? [];
  expect(listener?.state).toBe("serving");
  expect(listener?.routes.map(({ name, problems }) => `${name} ${problems.length}`)).toEqual([
    "bad 1",
    "good 0",
  ]);
  const told = JSON.stringify([...live.engine.verdicts()]);
  for (const text of [told, ...logged]) expect(text).not.toContain("secret.example");

  live.take([{ ...route("team-a", "bad", "/bad"), resource: undefined }]);
  live.take([route("team-a", "mended", "/bad")]);
  await envoy.settle();
  await expect.poll(() => refusal("HTTPRoute/team-a/mended")).toBeUndefined();
  expect(JSON.stringify([...live.engine.verdicts()])).not.toContain("Refused");
});
