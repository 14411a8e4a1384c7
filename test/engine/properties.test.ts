/**
 * Invariants of the engine on random histories of creates, edits and deletes of all kinds.
 * HISTORIES=100000 for the long run.
 */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Resource } from "../../src/api/resource.ts";
import { listenerId } from "../../src/engine/foundation/item-ids.ts";
import { renderStatus } from "../../src/status/render.ts";
import { Player, tell } from "./history.ts";
import { naiveAcceptance, naiveMerge, outcomeOf } from "./naive-merge.ts";
import { type Change, history } from "./random-resources.ts";
import { TEST_SETTINGS } from "./settings.ts";

const RUNS = Number(process.env["HISTORIES"] ?? 1000);
const TIMEOUT = 60_000 + RUNS * 100;

type Steps = readonly (readonly Change[])[];

/** Runs a property on every history; what fast-check shrinks to is told step by step. */
function holds(check: (steps: Steps) => void): void {
  fc.assert(
    fc.property(history, (steps) => {
      try {
        check(steps);
      } catch (error) {
        throw new Error(`${error instanceof Error ? error.message : error}\n${tell(steps)}`, {
          cause: error,
        });
      }
    }),
    { numRuns: RUNS },
  );
}

describe("the engine", () => {
  it(
    "computes step by step what it computes from scratch, in whatever order the resources arrive",
    () => {
      holds((steps) => {
        // Half of the histories with a limit, and a data plane that answers.
        const settings = steps.length % 2 === 0 ? {} : { maxListenersPerGateway: 4, assumeProgrammed: false };
        const player = new Player(settings);
        for (const changes of steps) player.confirm(player.play(changes));
        expect(player.tables()).toEqual(player.answer());

        const final = [...player.resources].map(([key, resource]) => ({ key, resource }));
        const atOnce = new Player(settings);
        atOnce.learn(player.reports);
        atOnce.play(final);
        expect(atOnce.answer()).toEqual(player.answer());

        const oneByOne = new Player(settings);
        oneByOne.learn(player.reports);
        for (const change of final.toSorted((a, b) => (mixed(a.key) < mixed(b.key) ? -1 : 1)))
          oneByOne.play([change]);
        expect(oneByOne.answer()).toEqual(player.answer());
      });
    },
    TIMEOUT,
  );

  it(
    "lets at most one owner serve a port and hostname, as a walk in precedence would",
    () => {
      holds((steps) => {
        const player = new Player();
        for (const changes of steps) {
          player.play(changes);
          const served = new Set<string>();
          for (const item of player.plan.values()) {
            if (item.type !== "listener") continue;
            const name = `${item.port} ${item.hostname}`;
            expect(served.has(name), `${name} is served twice`).toBe(false);
            served.add(name);
            expect(player.plan.has(item.port), `${item.port} is in the plan`).toBe(true);
          }
          const merged = [...player.engine.listeners()];
          const expected = naiveMerge(merged);
          for (const listener of merged) {
            expect(`${listener.key} ${outcomeOf(listener)}`).toBe(
              `${listener.key} ${expected.get(listener.key)}`,
            );
          }
        }
      });
    },
    TIMEOUT,
  );

  it(
    "accepts a Gateway while any of its merged listeners is valid, and attached objects never contradict it",
    () => {
      const seen = { byOthers: 0, ParentNotAccepted: 0, ListenersNotValid: 0, accepted: 0 };
      holds((steps) => {
        const player = new Player();
        for (const changes of steps) {
          player.play(changes);
          const merged = [...player.engine.listeners()];
          const outcomes = naiveMerge(merged);
          const valid = merged.filter(({ key }) => outcomes.get(key) === "serves");
          for (const [key, verdict] of player.verdicts) {
            const attachment = player.engine.attachment(key);
            if (attachment?.gateway === undefined || !("listeners" in verdict)) continue;
            const { role, listeners } = attachment.owner;
            const validOf = (owner: string): number =>
              valid.filter((each) => each.owner.key === owner).length;
            const root = player.engine.attachment(attachment.gateway)?.owner;
            const validAnywhere = valid.filter(({ gateway }) => gateway === attachment.gateway).length;
            const expected = naiveAcceptance(
              { role, listeners: listeners.length, valid: validOf(key) },
              { listeners: root?.listeners.length ?? 0, validAnywhere },
            );
            const accepted = verdict.conditions.find(({ type }) => type === "Accepted");
            const said = accepted?.status === "True" ? "accepted" : accepted?.reason;
            expect(`${key} ${said}`).toBe(`${key} ${expected}`);
            seen[expected]++;
            if (role !== "root" || listeners.length === 0 || validOf(key) > 0 || validAnywhere === 0)
              continue;
            expect(accepted?.reason).toBe("ListenersNotValid");
            expect(verdict.conditions).toContainEqual(
              expect.objectContaining({ type: "Programmed", status: "True" }),
            );
            seen.byOthers++;
          }
        }
      });
      // The rarest is seen about 50 times in 1,000 histories.
      for (const [what, times] of Object.entries(seen)) expect(times, what).toBeGreaterThan(RUNS / 100);
    },
    TIMEOUT,
  );

  it(
    "serves the next in line in the step that removes the winner",
    () => {
      let handovers = 0;
      holds((steps) => {
        const player = new Player();
        for (const changes of steps) player.play(changes);
        for (let round = 0; round < 5; round++) {
          const loser = [...player.engine.listeners()].find(
            ({ heldBy, gateway }) => heldBy !== undefined && !heldBy.startsWith(`${gateway}#`),
          );
          if (loser === undefined) return;
          const holder = listenerId(loser.gateway, loser.heldBy ?? "");
          const held = player.plan.get(holder);
          expect(held, `${holder} holds and serves`).toMatchObject({ type: "listener" });
          const owner = loser.heldBy?.split("#")[0] as string;
          const before = new Set(player.plan.keys());
          const { plan } = player.play([{ key: owner, resource: undefined }]);
          expect(plan.removes).toContain(holder);
          // Who serves now: nobody when the losers are indistinct among each other.
          const listeners = [...player.engine.listeners()];
          const outcomes = naiveMerge(listeners);
          const next = listeners
            .filter(({ key }) => outcomes.get(key) === "serves")
            .map(({ gateway, key }) => listenerId(gateway, key));
          const upserts = plan.upserts.map(({ id }) => id);
          expect(upserts).toEqual(expect.arrayContaining(next.filter((id) => !before.has(id))));
          if (next.every((id) => before.has(id))) continue;
          expect(next.some((id) => player.plan.get(id)?.type === "listener")).toBe(true);
          handovers++;
        }
      });
      expect(handovers, "histories that came to a hand-over").toBeGreaterThan(RUNS / 20);
    },
    TIMEOUT,
  );

  it(
    "never gives the id of one Gateway's item to another Gateway's, and removes the item from the first",
    () => {
      let moves = 0;
      holds((steps) => {
        const player = new Player();
        const gatewayOf = new Map<string, string>();
        const servedBy = new Map<string, string>();
        for (const changes of steps) {
          for (const item of player.play(changes).plan.upserts) {
            expect(`${item.id} of ${gatewayOf.get(item.id) ?? item.gateway}`).toBe(
              `${item.id} of ${item.gateway}`,
            );
            gatewayOf.set(item.id, item.gateway);
            if (item.type !== "listener") continue;
            const { kind, namespace, name } = item.owner;
            const listener = `${kind}/${namespace}/${name}#${item.section}`;
            if ((servedBy.get(listener) ?? item.gateway) !== item.gateway) moves++;
            servedBy.set(listener, item.gateway);
          }
        }
      });
      expect(moves, "listeners that went to another Gateway").toBeGreaterThan(RUNS / 50);
    },
    TIMEOUT,
  );

  it(
    "writes only names into a message that its reader has written",
    () => {
      let messages = 0;
      holds((steps) => {
        const player = new Player();
        player.learnOfGateway("Gateway/ns-plat/gw-main", "svc-hidden", "es-hidden");
        for (const changes of steps) player.play(changes);
        for (const [key, verdict] of player.verdicts) {
          const resource = player.resources.get(key);
          expect(resource, `${key} has a verdict and exists`).toBeDefined();
          if (resource === undefined) continue;
          const { status: _, ...written } = resource as typeof resource & { status?: unknown };
          const own = new Set(tokens(JSON.stringify(written)));
          // What is wrong with its infrastructure, and which of its pods lag, is for the Gateway's
          // owner alone.
          // The platform tells a tenant what it may have.
          for (const token of tokens(JSON.stringify(allowedPatterns(player.resources.values()))))
            own.add(token);
          const isRoot = player.engine.attachment(key)?.owner.role === "root";
          if (isRoot && key === "Gateway/ns-plat/gw-main") own.add("svc-hidden").add("es-hidden");
          const { addresses: _addresses, ...status } = renderStatus(resource, verdict, {
            controllerName: TEST_SETTINGS.controllerName,
            now: "2026-01-01T00:00:00Z",
          });
          // The ancestors of a policy are the Gateways that it reaches: the API asks for them.
          const text = JSON.stringify(status, (field, value: unknown) =>
            field === "ancestorRef" ? undefined : value,
          );
          for (const token of tokens(text)) {
            messages++;
            expect(own.has(token), `${key} is told of ${token}: ${text}`).toBe(true);
          }
        }
      });
      expect(messages, "names in messages").toBeGreaterThan(RUNS / 10);
    },
    TIMEOUT,
  );
});

function allowedPatterns(resources: Iterable<Resource>): readonly string[] {
  return [...resources].flatMap((each) =>
    each.kind === "TenantPolicy"
      ? (each.spec.rules ?? []).flatMap(({ hostnames }) => [...hostnames.allow])
      : [],
  );
}

/** All names of the random universe look like this. */
function tokens(text: string): readonly string[] {
  return text.match(/\b(?:ns|gw|ls|sect|host|rt|rule|rg|tls|pol|svc|es|sec|cm|pair)-[a-z]+/g) ?? [];
}

/** An order that has nothing to do with names or time. */
function mixed(text: string): number {
  let value = 7;
  for (let i = 0; i < text.length; i++) value = (value * 31 + text.charCodeAt(i) * 17) % 1_000_003;
  return value;
}
