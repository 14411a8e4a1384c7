import { describe, expect, it } from "vitest";
import type { EndpointSlice } from "../../src/api/core.ts";
import { type GatewayPod, GatewayPods } from "../../src/infra/gateway-pods.ts";
import { bounded } from "../../src/infra/objects/names.ts";

type Endpoint = NonNullable<EndpointSlice["endpoints"]>[number];

const LONG = "a-name-that-is-longer-than-a-label-may-be-and-is-therefore-cut-somewhere-here";

function endpoint(name: string, conditions: NonNullable<Endpoint["conditions"]> = {}): Endpoint {
  return { addresses: ["10.0.0.1"], conditions, targetRef: { kind: "Pod", name } };
}

function slice(endpoints: readonly Endpoint[], gateway = "shared", labels: object = {}): EndpointSlice {
  return {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      name: "x",
      namespace: "infra",
      labels: {
        "app.kubernetes.io/managed-by": "mergeway",
        "gateway.networking.k8s.io/gateway-name": bounded(gateway),
        ...labels,
      },
    },
    addressType: "IPv4",
    endpoints,
  };
}

function pods(): { told: [string, readonly GatewayPod[] | undefined][]; known: GatewayPods } {
  const told: [string, readonly GatewayPod[] | undefined][] = [];
  return { told, known: new GatewayPods((...each) => told.push(each)) };
}

describe("the pods of a Gateway", () => {
  it("are those that its slices name, each once, without those that are about to go", () => {
    const { told, known } = pods();
    known.serve("infra/shared");
    known.notice("EndpointSlice/infra/v4", slice([endpoint("b", { ready: false }), endpoint("a")]));
    known.notice("EndpointSlice/infra/v6", slice([endpoint("b"), endpoint("a")]));
    known.notice("EndpointSlice/infra/v6", slice([endpoint("b"), endpoint("a", { terminating: true })]));
    known.notice("EndpointSlice/infra/v4", undefined);
    const [a, b] = [
      { name: "a", isReady: true },
      { name: "b", isReady: true },
    ];
    expect(told).toEqual([
      ["infra/shared", [a, { name: "b", isReady: false }]],
      ["infra/shared", [a, b]],
      ["infra/shared", [b]],
    ]);
  });

  it("may be known before the Gateway is, and whatever its name", () => {
    const { told, known } = pods();
    known.notice("EndpointSlice/infra/x", slice([endpoint("a")], LONG));
    expect(told).toEqual([]);
    known.serve(`infra/${LONG}`);
    expect(told).toEqual([[`infra/${LONG}`, [{ name: "a", isReady: true }]]]);
    known.release(`infra/${LONG}`);
    expect(told.at(-1)).toEqual([`infra/${LONG}`, undefined]);
  });

  it("are not told of where they have no names, and when there are none", () => {
    const { told, known } = pods();
    known.serve("infra/shared");
    known.notice("EndpointSlice/infra/x", slice([endpoint("a")]));
    known.notice("EndpointSlice/infra/x", slice([endpoint("a"), { addresses: ["10.0.0.2"] }]));
    known.notice("EndpointSlice/infra/x", slice([]));
    expect(told.map(([, found]) => found?.length)).toEqual([1, undefined]);
  });

  it("are not those of other Services", () => {
    const { told, known } = pods();
    known.serve("infra/shared");
    const others = { "app.kubernetes.io/managed-by": "somebody" };
    known.notice("EndpointSlice/infra/x", slice([endpoint("a")], "shared", others));
    known.notice("EndpointSlice/infra/y", slice([endpoint("a")], "another"));
    expect(told).toEqual([]);
  });
});
