/** What it costs that a Gateway's acceptance follows from everybody's listeners. */
import { describe, expect, it } from "vitest";
import { type Key, keyOf } from "../../src/api/key.ts";
import type { Resource } from "../../src/api/resource.ts";
import { Engine } from "../../src/engine/engine.ts";
import type { OwnerVerdict } from "../../src/engine/verdicts/verdicts.ts";
import { TEST_SETTINGS } from "./settings.ts";

const API = "gateway.networking.k8s.io/v1";
const GATEWAY: Key = "Gateway/infra/gw";

function listener(name: string, isValid: boolean): object {
  return {
    name,
    port: 80,
    protocol: isValid ? "HTTP" : "example.com/unknown",
    hostname: `${name}.example.com`,
  };
}

function resource(kind: string, namespace: string, name: string, spec: object): Resource {
  return { apiVersion: API, kind, metadata: { namespace, name }, spec } as unknown as Resource;
}

function gateway(isValid: boolean): Resource {
  return resource("Gateway", "infra", "gw", {
    gatewayClassName: "mergeway",
    allowedListeners: { namespaces: { from: "All" } },
    listeners: [listener("own", isValid)],
  });
}

function set(name: string, isValid: boolean): Resource {
  const parentRef = { group: "gateway.networking.k8s.io", kind: "Gateway", namespace: "infra", name: "gw" };
  return resource("ListenerSet", "team", name, { parentRef, listeners: [listener(name, isValid)] });
}

/**
 * An engine with so many sets that have no valid listener, and how many nodes each edit of it
 * computes.
 */
function crowd(
  invalidSets: number,
  more: readonly Resource[],
): { readonly engine: Engine; readonly cost: (key: Key, after: Resource | undefined) => number } {
  const engine = new Engine(TEST_SETTINGS);
  const resources = [...more, ...Array.from({ length: invalidSets }, (_, i) => set(`bad-${i}`, false))];
  engine.apply(resources.map((one) => ({ key: keyOf(one), resource: one })));
  const cost = (key: Key, after: Resource | undefined): number => {
    const before = engine.recomputed;
    engine.apply([{ key, resource: after }]);
    return engine.recomputed - before;
  };
  return { engine, cost };
}

function accepted(engine: Engine, key: Key): string {
  const { conditions } = engine.verdict(key) as OwnerVerdict;
  const { status, reason } = conditions.find(({ type }) => type === "Accepted") ?? {};
  return `${status} ${reason}`;
}

describe("acceptance of a Gateway by the listeners of others", () => {
  it("costs the same among few and among many sets without a valid listener, while it does not flip", () => {
    const costs = [2, 200].map((sets) => {
      const { engine, cost } = crowd(sets, [gateway(false), set("good-0", true)]);
      const spent = [
        cost("ListenerSet/team/good-1", set("good-1", true)),
        cost("ListenerSet/team/good-0", undefined),
        cost("ListenerSet/team/bad-1", set("bad-1", false)),
      ];
      expect(accepted(engine, GATEWAY)).toBe("True ListenersNotValid");
      expect(accepted(engine, "ListenerSet/team/bad-0")).toBe("False ListenersNotValid");
      return spent;
    });
    expect(costs[1]).toEqual(costs[0]);
  });

  it("flips for everything attached in one step, and back", () => {
    const { engine, cost } = crowd(200, [gateway(false), set("good-0", true)]);
    expect(cost("ListenerSet/team/good-0", undefined)).toBeGreaterThanOrEqual(200);
    expect(accepted(engine, GATEWAY)).toBe("False ListenersNotValid");
    for (let i = 0; i < 200; i++) {
      expect(accepted(engine, `ListenerSet/team/bad-${i}`)).toBe("False ParentNotAccepted");
    }
    cost(GATEWAY, gateway(true));
    expect(accepted(engine, GATEWAY)).toBe("True Accepted");
    expect(accepted(engine, "ListenerSet/team/bad-7")).toBe("False ListenersNotValid");
  });
});
