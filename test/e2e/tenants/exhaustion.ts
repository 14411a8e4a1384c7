import { describe, expect, test } from "vitest";
import { OWN, type Stored, type SustainedAttack, saidIn, WAIT } from "./sustained-attack.ts";
import { EMBEDDED, FRONTS, GATEWAY_API, HOST, http, MOST_LISTENERS, route, set } from "./world.ts";

export function exhaustingTheController(attack: () => SustainedAttack): void {
  describe("exhausting the controller", { timeout: 1_200_000 }, () => {
    /** Thousands of objects take their time where a machine is small. */
    const LONG = { timeout: 600_000, interval: 500 };
    /** A busy API server may leave a request without an answer. */
    const RETRIES = 20;
    const RSS = "process_resident_memory_bytes";
    const MEGABYTE = 1024 * 1024;
    const resident = async (): Promise<number> => Math.round((await attack().metric(RSS)) / MEGABYTE);

    test("by fighting over a status", async () => {
      const path = `${OWN}/listenersets/contested`;
      const writesOf = 'mergeway_status_writes_total{kind="ListenerSet",result="written"}';
      const fightsOf = 'mergeway_status_fights_total{kind="ListenerSet"}';
      await attack().writes("listenersets", set("mallory/contested", [http(HOST)]));
      const accepted = async () => saidIn((await attack().read(path)).status?.conditions).Accepted;
      await expect.poll(accepted, WAIT).toMatch(/^False/);
      const [writes, fights] = [await attack().metric(writesOf), await attack().metric(fightsOf)];
      const lie = {
        type: "Accepted",
        status: "True",
        reason: "Accepted",
        message: "mine {{n}}",
        lastTransitionTime: "2026-01-01T00:00:00Z",
      };
      // However quick or slow the machine is: she does not rest before she was contradicted three
      // times.
      let lies = 0;
      for (let floods = 0; floods < 200; floods++) {
        const times = { count: 20, parallel: 2, retries: RETRIES };
        const { statuses } = await attack().mallory.flood(times, "PATCH", `${path}/status`, {
          status: { conditions: [lie] },
        });
        expect(statuses).toEqual({ 200: times.count });
        lies += times.count;
        if (lies >= 200 && (await attack().metric(fightsOf)) - fights >= 3) break;
      }
      expect((await attack().metric(fightsOf)) - fights).toBeGreaterThanOrEqual(3);
      await expect
        .poll(() => attack().eventsOf("mallory", "contested"), LONG)
        .toContainEqual(expect.stringMatching(/^StatusContested/));
      expect((await attack().metric(writesOf)) - writes).toBeLessThan(lies / 5);
      await expect.poll(accepted, LONG).toMatch(/^False/);
    });

    test("with annotations as large as the API server takes them", async () => {
      const large = {
        ...(set("mallory/large", [http("large.mallory.example.com")]) as { metadata: object; spec: object }),
      };
      const annotations = {
        "mergeway.dev/note": "x".repeat(120 * 1024),
        "example.test/note": "x".repeat(120 * 1024),
      };
      const manifest = { ...large, metadata: { name: "large-{{n}}", annotations } };
      const earlier = await attack().metric(RSS);
      const { statuses } = await attack().mallory.flood(
        { count: 100, parallel: 4, retries: RETRIES },
        "POST",
        `${OWN}/listenersets`,
        manifest,
      );
      expect(statuses).toEqual({ 201: 100 });
      await expect
        .poll(() => attack().listenerOf("large-99"), LONG)
        .toMatchObject({ Accepted: expect.any(String) });
      // What is resident includes garbage until the next collection.
      await expect
        .poll(async () => (await attack().metric(RSS)) - earlier, LONG)
        .toBeLessThan(200 * MEGABYTE);
    });

    test("with ten thousand sets, while alice is served and heard", async () => {
      const manifest = set("mallory/many-{{n}}", [http("n{{n}}.many.example.com")]);
      const { statuses, seconds } = await attack().mallory.flood(
        { count: 10_000, parallel: 48, retries: RETRIES },
        "POST",
        `${OWN}/listenersets`,
        manifest,
      );
      expect(statuses).toEqual({ 201: 10_000 });
      const alice = set("alice/second", [http("second.alice.example.com")]);
      await attack().platform(alice);
      const second = async (): Promise<Stored> =>
        JSON.parse(
          (await attack().admin.get(`/apis/${GATEWAY_API}/namespaces/alice/listenersets/second`)).body,
        ) as Stored;
      await expect
        .poll(async () => (await second()).status?.listeners?.length, { ...LONG, interval: 50 })
        .toBe(1);
      const backlog = await attack().metric("mergeway_status_backlog");
      console.log(
        `10,000 sets in ${seconds.toFixed(0)} s; backlog ${backlog} when alice was heard; ${await resident()} MiB`,
      );
      // Every one of hers is looked at as well, and no garbage stays.
      await expect.poll(() => attack().metric("mergeway_status_backlog"), LONG).toBe(0);
      await expect.poll(resident, LONG).toBeLessThan(900);
      for (const front of FRONTS) expect(await attack().servedBy(HOST, front)).toBe("alice");
    });

    test("of which no more are served than the platform allows, and the others say so", async () => {
      const path = "/apis/gateway.networking.k8s.io/v1/namespaces/infra/gateways/shared";
      const attached = async (): Promise<number> =>
        (JSON.parse((await attack().admin.get(path)).body) as { status: { attachedListenerSets: number } })
          .status.attachedListenerSets;
      await expect.poll(attached, LONG).toBeLessThanOrEqual(MOST_LISTENERS);
      await expect
        .poll(() => attack().listenerOf("many-2500"), LONG)
        .toMatchObject({ Accepted: "False/TooManyListeners" });
      expect(await attack().servedBy("n2500.many.example.com")).not.toBe("mallory");
    });

    test("with thousands of routes", async () => {
      const rules = Array.from({ length: 8 }, (_, i) => ({
        matches: [{ path: { type: "RegularExpression", value: `/(a+)+${i}$` } }],
        backendRefs: [{ name: "den", port: 8080 }],
      }));
      const manifest = route("mallory/many-{{n}}", {
        parentRefs: [{ kind: "ListenerSet", name: `above-${EMBEDDED.plane}` }],
        rules,
      });
      const { statuses } = await attack().mallory.flood(
        { count: 2_000, parallel: 32, retries: RETRIES },
        "POST",
        `${OWN}/httproutes`,
        manifest,
      );
      expect(statuses).toEqual({ 201: 2_000 });
      await expect.poll(() => attack().parentOf("many-0"), LONG).toMatchObject({ Accepted: "True/Accepted" });
      for (const front of FRONTS) expect(await attack().servedBy(HOST, front)).toBe("alice");
      await expect.poll(resident, LONG).toBeLessThan(900);
    });
  });
}
