/**
 * Values that an API server refuses and that come all the same, say of another version of the CRD:
 * the policy says what is wrong, and what it was to change stays closed.
 */
import { expect, test } from "vitest";
import { keyOf } from "../../../src/api/key.ts";
import type { Resource } from "../../../src/api/resource.ts";
import { openManifests } from "../../../src/cli/workspace/workspace.ts";
import { folder } from "../../cli/mergeway.ts";

const BAD: readonly (readonly [settings: object, problem: RegExp])[] = [
  [{ retries: { attempts: 11 } }, /retries\.attempts: 11 is not between 0 and 10/],
  [{ retries: { attempts: 2 ** 63 } }, /retries\.attempts: .* is not between 0 and 10/],
  [{ retries: { attempts: 1, codes: [200] } }, /retries\.codes: 200 is not between 400 and 599/],
  [{ retries: { attempts: 1, methods: ["GET|POST"] } }, /retries\.methods: "GET\|POST" is not one of/],
  [{ retries: { attempts: 1, backoff: "1ms" } }, /retries\.backoff: 1ms is not between 10ms and 1m/],
  [{ cors: { allowOrigins: ["https://a.example\r\nx: y"] } }, /cors: /],
  [{ cors: { maxAge: 0 } }, /cors: maxAge/],
  [{ compression: { algorithms: ["deflate"] } }, /compression\.algorithms: "deflate" is not one of/],
  [{ compression: { algorithms: [] } }, /compression\.algorithms: the list is empty/],
  [{ compression: { minBytes: 2 ** 63 } }, /compression\.minBytes: 9223372036854776000 is not between/],
  [{ compression: { minBytes: -1 } }, /compression\.minBytes: -1 is not between/],
  [{ compression: { contentTypes: [] } }, /compression\.contentTypes: 0 is not between 1 and 64/],
  [
    { compression: { contentTypes: Array.from({ length: 5_000 }, (_, at) => `text/x-${at}`) } },
    /compression\.contentTypes: 5000 is not between 1 and 64/,
  ],
  [
    { compression: { contentTypes: ["text/html\r\nx: y"] } },
    /compression\.contentTypes: .* is no media type/,
  ],
  [{ compression: { contentTypes: ["text/*"] } }, /compression\.contentTypes: .* is no media type/],
  [{ compression: { contentTypes: ["application/grpc+proto"] } }, /compression\.contentTypes: gRPC/],
  [{ directResponse: { status: 101 } }, /directResponse\.status: 101 is neither 200 nor/],
  [{ directResponse: { status: 304 } }, /directResponse\.status: 304 is neither 200 nor/],
  [{ directResponse: { contentType: "text/html\r\nx: y" } }, /directResponse\.contentType: it is no media/],
  [{ directResponse: { retryAfter: "48h" } }, /directResponse\.retryAfter: 48h is not between 1s and 24h/],
  [{ directResponse: { body: { inline: "é".repeat(2049) } } }, /directResponse\.body\.inline: .* 4 KiB/],
];

const WORLD = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: one}
spec: {gatewayClassName: mergeway, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: one}
spec: {parentRefs: [{name: gw}], rules: [{backendRefs: [{name: web, port: 80}]}]}
`;

test.each(BAD)("the policy says what is wrong, and nothing passes: case %#", async (settings, problem) => {
  const { engine } = await openManifests([folder({ "all.yaml": WORLD })]);
  const resource: Resource = {
    apiVersion: "mergeway.dev/v1alpha1",
    kind: "TrafficPolicy",
    metadata: { name: "own", namespace: "one" },
    spec: {
      targetRefs: [{ group: "gateway.networking.k8s.io", kind: "HTTPRoute", name: "web" }],
      overrides: settings,
    },
  };
  engine.apply([{ key: keyOf(resource), resource }]);
  const verdict = engine.verdict("TrafficPolicy/one/own");
  const conditions = verdict?.type === "policy" ? verdict.ancestors.flatMap((each) => each.conditions) : [];
  const accepted = conditions.find(({ type }) => type === "Accepted");
  expect(accepted).toMatchObject({ status: "False", reason: "Invalid" });
  expect(accepted?.message).toMatch(problem);
  const items = [...engine.plan()];
  const [rule] = items.flatMap((item) => (item.type === "host" ? item.rules : []));
  expect(rule?.guards).toHaveLength(1);
  expect(items.some(({ id }) => id === rule?.guards?.[0])).toBe(false);
});
