/** Transfers and claims, on random histories of a few sets and one TenantPolicy. */
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { keyOf } from "../../../src/api/key.ts";
import type { Resource } from "../../../src/api/resource.ts";
import type { UsedHostname } from "../../../src/engine/listeners/claims.ts";
import { isServing, type MergedListener } from "../../../src/engine/listeners/merge.ts";
import { Player } from "../history.ts";

const GROUP = "gateway.networking.k8s.io";
const NAMES = ["a.test", "b.test", "*.test"] as const;
const TEAMS = ["ant", "bee", "cat"] as const;

function object(kind: string, namespace: string, name: string, more: object): Resource {
  return { apiVersion: "v1", kind, metadata: { namespace, name, ...more }, ...more } as unknown as Resource;
}

const GATEWAY = object("Gateway", "infra", "gw", {
  spec: { gatewayClassName: "mergeway", allowedListeners: { namespaces: { from: "All" } }, listeners: [] },
});

interface Transfer {
  readonly hostname: string;
  readonly to: { readonly namespace: string; readonly name?: string };
}

function policy(transfers: readonly Transfer[]): Resource {
  const targetRefs = [{ group: GROUP, kind: "Gateway", name: "gw" }];
  return object("TenantPolicy", "infra", "tenants", {
    spec: { targetRefs, enforcement: "Enforce", unmatchedNamespaces: "Allow", claims: "Hold", transfers },
  });
}

function set(team: string, day: number, asked: readonly (readonly [string, number])[]): Resource {
  const parentRef = { group: GROUP, kind: "Gateway", name: "gw", namespace: "infra" };
  const listeners = asked.map(([hostname, port], at) => ({
    name: `l${at}`,
    port,
    protocol: "HTTP",
    hostname,
  }));
  return object("ListenerSet", team, "web", {
    creationTimestamp: `2026-01-0${day}T00:00:00Z`,
    spec: { parentRef, listeners },
  });
}

const asked = fc.uniqueArray(fc.tuple(fc.constantFrom(...NAMES), fc.constantFrom(80, 81)), {
  maxLength: 4,
  selector: String,
});
const step = fc.oneof(
  {
    weight: 4,
    // The order of teams is the order of ages.
    arbitrary: fc
      .tuple(fc.constantFrom(...TEAMS), asked)
      .map(([team, names]): Resource => set(team, 1 + TEAMS.indexOf(team), names)),
  },
  {
    weight: 3,
    arbitrary: fc
      .record({
        hostname: fc.constantFrom(...NAMES),
        namespace: fc.constantFrom(...TEAMS),
        isNamed: fc.boolean(),
      })
      .map(({ hostname, namespace, isNamed }): Resource => {
        const to = { namespace, ...(isNamed ? { name: "web" } : {}) };
        return policy([{ hostname, to }]);
      }),
  },
  { weight: 1, arbitrary: fc.constant(policy([])) },
);
const history = fc.array(step, { minLength: 6, maxLength: 20, size: "max" });

function shown({ key, hostname, port, conflict }: MergedListener): string {
  return `${key} ${hostname} ${port} ${conflict?.message ?? "serves"}`;
}

function played(resources: Iterable<Resource>): Player {
  const player = new Player();
  player.play([...resources].map((resource) => ({ key: keyOf(resource), resource })));
  return player;
}

/** Claims as somebody knows them who has only been told of changes. */
class Follower {
  readonly player: Player = played([GATEWAY]);
  readonly known: Map<string, UsedHostname> = new Map();

  play(resource: Resource): void {
    this.player.play([{ key: keyOf(resource), resource }]);
    for (const [place, claim] of this.player.engine.changedClaims())
      if (claim === undefined) this.known.delete(place);
      else this.known.set(place, claim);
  }
}

describe("transfers of hostnames", () => {
  test("on random histories leave each name with its receiver where that can serve it, else with the oldest", () => {
    let given = 0;
    fc.assert(
      fc.property(history, (resources) => {
        const follower = new Follower();
        for (const resource of resources) follower.play(resource);
        const { engine, resources: world } = follower.player;
        const tenants = world.get("TenantPolicy/infra/tenants") as
          | { spec: { transfers: readonly Transfer[] } }
          | undefined;
        const places = Map.groupBy(engine.listeners(), ({ hostname, port }) => `${hostname} ${port}`);
        for (const listeners of places.values()) {
          const transfer = tenants?.spec.transfers.find(
            ({ hostname }) => hostname === listeners[0]?.hostname,
          );
          const byAge = listeners.toSorted((a, b) => (a.rank < b.rank ? -1 : 1));
          const receiver = byAge.find(({ owner }) => owner.namespace === transfer?.to.namespace);
          if (receiver !== undefined && receiver !== byAge[0]) given++;
          expect(listeners.filter(isServing).map(({ key }) => key)).toEqual([(receiver ?? byAge[0])?.key]);
        }
      }),
      { numRuns: 300 },
    );
    expect(given).toBeGreaterThan(5);
  });

  test("and claims are the same after changes as when computed afresh", () => {
    fc.assert(
      fc.property(history, (resources) => {
        const follower = new Follower();
        for (const resource of resources) follower.play(resource);
        const fresh = played(follower.player.resources.values());
        const tables = ({ engine }: Player): readonly string[] =>
          Array.from(engine.listeners(), shown).sort();
        expect(tables(follower.player)).toEqual(tables(fresh));
        expect(Object.fromEntries(follower.known)).toEqual(Object.fromEntries(fresh.engine.changedClaims()));
      }),
      { numRuns: 300 },
    );
  });
});

describe("claims", () => {
  const claimsOf = (...resources: readonly Resource[]): readonly (UsedHostname | undefined)[] => [
    ...played([GATEWAY, ...resources])
      .engine.changedClaims()
      .values(),
  ];

  test("name the holder, who wants the name, and to whom it was given", () => {
    const gateway = "Gateway/infra/gw";
    const [ant, bee] = [set("ant", 1, [["a.test", 80]]), set("bee", 2, [["a.test", 80]])];
    const [holders, wanted] = [["ListenerSet/ant/web"], ["ListenerSet/bee/web"]];
    expect(claimsOf(policy([]), ant, bee)).toEqual([{ gateway, hostname: "a.test", holders, wanted }]);
    const transfer = { namespace: "cat" };
    expect(claimsOf(policy([{ hostname: "b.test", to: transfer }]))).toEqual([
      { gateway, hostname: "b.test", holders: [], wanted: [], transfer },
    ]);
  });

  test("are held by a listener that waits for its certificate, and by none of the Gateway's namespace", () => {
    const waiting = set("ant", 1, []);
    const listeners = [
      {
        name: "tls",
        port: 443,
        protocol: "HTTPS",
        hostname: "a.test",
        tls: { certificateRefs: [{ name: "no" }] },
      },
    ];
    const spec = { ...("spec" in waiting ? waiting.spec : {}), listeners };
    const owned = claimsOf(policy([]), { ...waiting, spec } as Resource, set("infra", 2, [["b.test", 80]]));
    expect(owned).toMatchObject([{ hostname: "a.test", holders: ["ListenerSet/ant/web"] }]);
  });

  test("are nowhere without a TenantPolicy that holds them", () => {
    expect(claimsOf(set("ant", 1, [["a.test", 80]]))).toEqual([]);
  });

  test("put a reference into the message of a conflict, and nothing of the holder", () => {
    const player = new Player({ referenceOf: (gateway, hostname) => `<${gateway} ${hostname}>` });
    const world = [GATEWAY, policy([]), set("ant", 1, [["a.test", 80]]), set("bee", 2, [["a.test", 80]])];
    player.play(world.map((resource) => ({ key: keyOf(resource), resource })));
    const messages = Array.from(player.engine.listeners(), ({ conflict }) => conflict?.message);
    expect(messages).toEqual([
      undefined,
      expect.stringMatching(/ \(reference <Gateway\/infra\/gw a\.test>\)$/),
    ]);
    expect(messages[1]).not.toContain("ant");
  });
});
