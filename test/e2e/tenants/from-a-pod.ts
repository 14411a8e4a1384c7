import { beforeAll, describe, expect, test } from "vitest";
import type { SustainedAttack } from "./sustained-attack.ts";
import type { Outcome, Try } from "./unauthorised-stream.ts";
import { ENVOY, FRONTS, GATEWAY_API, http, object, SECRETS } from "./world.ts";

const REASONS = ["token", "identity", "elsewhere"];
const AUDIENCE = "mergeway.dev/controller";

/** Mallory may run pods in her namespace; this one knocks at every door. */
export function fromAPod(attack: () => SustainedAttack): void {
  describe("from a pod of hers", () => {
    let outcomes: ReadonlyMap<string, Outcome>;
    let refusedBefore: Readonly<Record<string, number>>;

    async function refusals(): Promise<Readonly<Record<string, number>>> {
      const counts = REASONS.map((reason) =>
        attack().metric(`mergeway_stream_refusals_total{reason="${reason}"}`),
      );
      return Object.fromEntries((await Promise.all(counts)).map((count, index) => [REASONS[index], count]));
    }

    beforeAll(async () => {
      const spec = { gatewayClassName: "mergeway", listeners: [http("own.example.com")] };
      await attack().writes("gateways", object(GATEWAY_API, "Gateway", "mallory/own", { spec }));
      const programmed = ["--for=condition=Programmed", "gateway/own", "--timeout=240s"];
      await attack().kubectl("wait", "-n", "mallory", ...programmed);
      const tries = [...(await triesForPlans(attack())), ...(await triesForPorts(attack()))];
      refusedBefore = await refusals();
      outcomes = await attack().runUnauthorisedClient(tries);
    });

    test.each([
      ["no token", 401],
      ["nonsense", 403],
      ["her token for the API server", 403],
      ["her token for the controller", 403],
      ["the token of her Gateway's pod", 403],
      ["the token of her Gateway's pod, for a Gateway on Envoy", 403],
      ["her Gateway's account, but no pod", 403],
      ["a pod of her Gateway, replayed", 409],
      ["her pod's token as another pod", 403],
    ])("the plan of a Gateway is not had with %s", (name, status) => {
      expect(outcomes.get(name)).toMatchObject({ name, status, body: "" });
    });

    test("every try is counted and logged", async () => {
      const after = await refusals();
      const more = Object.fromEntries(
        REASONS.map((reason) => [reason, (after[reason] ?? 0) - (refusedBefore[reason] ?? 0)]),
      );
      // An attempt whose answer was lost may have been counted.
      const countOf = (name: string): unknown => {
        const { attempts = 1 } = outcomes.get(name) ?? {};
        return expect.toSatisfy((count: number) => count >= 1 && count <= attempts);
      };
      expect(more).toEqual({
        token: countOf("no token"),
        // Pods of Gateways that are just being deleted knock in vain, too.
        identity: expect.toSatisfy((count: number) => count >= 7),
        elsewhere: countOf("a pod of her Gateway, replayed"),
      });
      const log = await attack().log();
      expect(log).toMatch(/was refused a plan: it showed no token/);
      expect(log).toMatch(
        /was refused the plan of Gateway infra\/shared as pod .*: its token is not that of such a pod/,
      );
      expect(log).toMatch(
        /was refused the plan of Gateway mallory\/own as pod .*: that pod is connected from another address/,
      );
    });

    test("metrics name Gateways, and nothing of the tenants behind them", () => {
      const { status, body = "" } = outcomes.get("metrics") ?? {};
      expect(status).toBe(200);
      expect(body).toContain('gateway="infra/shared"');
      expect(body).not.toMatch(SECRETS);
      expect(body).not.toMatch(/example\.com/);
    });

    test("no other path of a known port has anything to tell", () => {
      const others = [...outcomes.values()].filter(({ name }) => /^\d/.test(name));
      expect(others.length).toBeGreaterThan(8);
      for (const { name, status, body } of others)
        expect([name, status, body.length < 10]).toEqual([name, 404, true]);
    });

    test.each(FRONTS)("a pod of $plane has no other port open", ({ plane }) => {
      expect(JSON.parse(outcomes.get(`ports of ${plane}`)?.body ?? "")).toEqual(
        plane === "envoy" ? [80, 443, 19901, 19902] : [80, 443, 19901],
      );
    });
  });
}

async function triesForPlans(attack: SustainedAttack): Promise<readonly Try[]> {
  const [pod, victim, envoy] = [
    await attack.podOf("mallory", "own"),
    await attack.podOf("infra", "shared"),
    await attack.podOf("infra", ENVOY.gateway),
  ];
  const shared = { gateway: "infra/shared", pod: victim.name };
  const mine = { gateway: "mallory/own", pod: pod.name };
  const token = await attack.tokenOf("own-mergeway", AUDIENCE, pod);
  const podless = await attack.tokenOf("own-mergeway", AUDIENCE);
  return [
    { name: "no token", plan: shared },
    { name: "nonsense", plan: { ...shared, token: "nonsense" } },
    { name: "her token for the API server", plan: { ...shared, tokenFile: "/tokens/api" } },
    { name: "her token for the controller", plan: { ...shared, tokenFile: "/tokens/ours" } },
    { name: "the token of her Gateway's pod", plan: { ...shared, token } },
    {
      name: "the token of her Gateway's pod, for a Gateway on Envoy",
      plan: { gateway: `infra/${ENVOY.gateway}`, pod: envoy.name, token },
    },
    { name: "her Gateway's account, but no pod", plan: { ...mine, token: podless } },
    { name: "a pod of her Gateway, replayed", plan: { ...mine, token } },
    { name: "her pod's token as another pod", plan: { ...mine, pod: "another", token } },
  ];
}

async function triesForPorts(attack: SustainedAttack): Promise<readonly Try[]> {
  const { controller } = attack;
  const at = (host: string, port: number, paths: readonly string[], of = ""): readonly Try[] =>
    paths.map((path) => ({ name: `${port}${path}${of}`, url: `http://${host}:${port}${path}` }));
  const pods = await Promise.all(
    FRONTS.map(async ({ plane, gateway }) => {
      const { address } = await attack.podOf("infra", gateway);
      const paths = ["/", "/plan", "/config", "/metrics", "/config_dump", "/certs", "/clusters", "/stats"];
      const probed = plane === "envoy" ? [19901, 19902] : [19901];
      return [
        ...probed.flatMap((port) => at(address, port, paths, ` of ${plane}`)),
        { name: `ports of ${plane}`, ports: address },
      ];
    }),
  );
  return [
    { name: "metrics", url: `http://${controller}:9090/metrics` },
    ...at(controller, 9090, ["/", "/metrics/..", "/debug", "/config"]),
    ...at(controller, 8081, ["/", "/config", "/metrics"]),
    ...pods.flat(),
  ];
}
