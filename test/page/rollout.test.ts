import { expect, test } from "vitest";
import { rolloutOf } from "../../src/page/model/rollout.ts";
import type { Outline, OutlineGateway } from "../../src/view/outline.ts";
import { twoTeams } from "./worlds.ts";

function gatewayOf({ gateways }: Outline): OutlineGateway {
  const [gateway] = gateways;
  if (gateway === undefined) throw new Error("there is no Gateway");
  return gateway;
}

test("counts what is accepted and programmed, and leaves out what never came to the data plane", async () => {
  const outline = await twoTeams();
  expect(rolloutOf(gatewayOf(outline), outline)).toEqual({
    listeners: 8,
    accepted: 6,
    programmed: 6,
    waiting: 0,
    refusals: [],
  });
});

test("names what the data plane has refused: listeners, and routes at their listeners", async () => {
  const outline = await twoTeams();
  const gateway = gatewayOf(outline);
  const owners = gateway.owners.map((owner) =>
    owner.name === "tea"
      ? {
          ...owner,
          listeners: owner.listeners.map((listener) => ({
            ...listener,
            state: "failed" as const,
            reason: "Invalid",
            message: "its port is taken",
          })),
        }
      : owner,
  );
  const problems = [{ reason: "Refused", message: "rule 1 is too large" }];
  const routes = outline.routes.map((route) => (route.name === "coffee" ? { ...route, problems } : route));
  const { programmed, refusals } = rolloutOf({ ...gateway, owners }, { ...outline, routes });
  expect(programmed).toBe(4);
  expect(refusals.map(({ what, text }) => [what, text])).toEqual([
    ["HTTPRoute team-coffee/coffee at ListenerSet team-coffee/coffee, listener http", "rule 1 is too large"],
    ["HTTPRoute team-coffee/coffee at ListenerSet team-coffee/coffee, listener https", "rule 1 is too large"],
    ["ListenerSet team-tea/tea, listener http", "Invalid: its port is taken"],
    ["ListenerSet team-tea/tea, listener https", "Invalid: its port is taken"],
  ]);
});

test("repeats what the Gateway's condition says of replicas that lag", async () => {
  const outline = await twoTeams();
  const message = "1 of 3 replicas has not confirmed the newest configuration: pod-2";
  const conditions = [{ type: "Programmed", status: "True", reason: "Programmed", message } as const];
  expect(rolloutOf({ ...gatewayOf(outline), conditions }, outline).note).toBe(message);
});
