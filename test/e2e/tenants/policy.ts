import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { ok } from "../../../tools/cluster/bed.ts";
import { readText } from "../../../tools/cluster/chart.ts";
import { OWN, type Stored, type SustainedAttack, WAIT } from "./sustained-attack.ts";
import { FRONTS, GATEWAY_API, HOST, http, SECRETS, set } from "./world.ts";

interface Readable extends Stored {
  readonly spec?: object;
  readonly regarding?: { readonly name: string };
  readonly note?: string;
}

export function readingOthers(attack: () => SustainedAttack): void {
  describe("reading what is another's", () => {
    test("nothing that mallory can read says anything of alice but what she wrote herself", async () => {
      const listed = async (path: string): Promise<readonly Readable[]> => {
        const { status, body } = await attack().mallory.get(path);
        expect(status).toBe(200);
        return (JSON.parse(body) as { items: readonly Readable[] }).items;
      };
      const plurals = ["listenersets", "httproutes", "gateways"];
      const objects = (await Promise.all(plurals.map((plural) => listed(`${OWN}/${plural}`)))).flat();
      // References come back in messages as they were given, so what refers to alice's things is
      // left out.
      const refers = ({ spec }: Readable): boolean => SECRETS.test(JSON.stringify(spec));
      const guilty = new Set(objects.filter(refers).map(({ metadata }) => metadata.name));
      const innocent = objects.filter(({ metadata }) => !guilty.has(metadata.name));
      const names = new Set(innocent.map(({ metadata }) => metadata.name));
      expect([...names]).toEqual(
        expect.arrayContaining([
          ...FRONTS.flatMap(({ plane }) =>
            ["same", "forged", "tcp", "above"].map((name) => `${name}-${plane}`),
          ),
          "own",
        ]),
      );
      const events = await listed("/apis/events.k8s.io/v1/namespaces/mallory/events");
      const told = [
        ...innocent.map(({ status }) => JSON.stringify(status ?? "")),
        ...events.filter(({ regarding }) => names.has(regarding?.name ?? "")).map(({ note }) => note ?? ""),
      ];
      expect(told.filter((words) => SECRETS.test(words))).toEqual([]);
      expect(told.filter((words) => words.includes("conflict")).length).toBeGreaterThan(4);
      for (const path of ["alice/listenersets", "infra/gateways"])
        expect((await attack().mallory.get(`/apis/${GATEWAY_API}/namespaces/${path}`)).status).toBe(403);
    });
  });
}

/** The YAML of the guide that is about a kind, as it stands there. */
function guideBlock(kind: string): string {
  const text = readText("docs/guides/tenants.md");
  const blocks = [...text.matchAll(/^```yaml\n(.*?)^```$/gms)].map(([, block]) => block ?? "");
  const found = blocks.find((block) => block.includes(`kind: ${kind}\n`));
  if (found === undefined) throw new Error(`the guide has no ${kind} any more`);
  return found;
}

export function policyOfTheGuide(attack: () => SustainedAttack): void {
  describe("what the Gateway API allows, and the policy of the guide does not", () => {
    beforeAll(async () => {
      // Older than what alice is about to have.
      await attack().writes("listenersets", set("mallory/older", [http("innocent.mallory.example.com")]));
      const alice = set("alice/younger", [
        http("late.example.com"),
        { ...http("*.alice.example.com"), name: "all" },
      ]);
      await attack().platform(alice);
      await attack().kubectl(
        "wait",
        "-n",
        "alice",
        "--for=condition=Programmed",
        "listenerset/younger",
        "--timeout=180s",
      );
      const policy = guideBlock("ValidatingAdmissionPolicy");
      await ok(attack().bed.kubectl(["apply", "-f", "-"], policy));
      const annotate = [
        "annotate",
        "namespace",
        "mallory",
        "example.com/hostnames=mallory.example.com,*.mallory.example.com",
      ];
      await attack().kubectl(...annotate);
      await probeIs(422);
    });

    afterAll(async () => {
      await attack().kubectl("delete", "validatingadmissionpolicybinding", "tenant-listeners");
      await probeIs(201);
    });

    /** A policy takes a moment to be in force, and another to be so no longer. */
    async function probeIs(status: number): Promise<void> {
      const probe = set("mallory/probe", [http("probe.example.com")]);
      await vi.waitUntil(
        async () =>
          (await attack().mallory.create(`${OWN}/listenersets?dryRun=All`, probe)).status === status,
        WAIT,
      );
    }

    const REFUSED = /a listener has a hostname that this namespace was not given/;

    test("writing another's hostname into an older set", async () => {
      const { status, body } = await attack().mallory.patch(`${OWN}/listenersets/older`, {
        spec: { listeners: [http("late.example.com")] },
      });
      expect(status).toBe(422);
      expect(body).toMatch(REFUSED);
    });

    test.each([
      ["taking a name out of another's wildcard", http("login.alice.example.com"), REFUSED],
      ["wanting everything", http(undefined), REFUSED],
      ["another's hostname on another port", { ...http(HOST), port: 8080 }, REFUSED],
      ["a port of one's own", { ...http("mallory.example.com"), port: 8080 }, /on port 80 or 443/],
    ])("%s", async (_title, listener, reason) => {
      const { status, body } = await attack().mallory.create(
        `${OWN}/listenersets`,
        set("mallory/more", [listener]),
      );
      expect(status).toBe(422);
      expect(body).toMatch(reason);
    });

    test("what was given may be had", async () => {
      await attack().writes("listenersets", set("mallory/given", [http("given.mallory.example.com")]));
      await expect
        .poll(() => attack().listenerOf("given"), WAIT)
        .toMatchObject({ Accepted: "True/Accepted" });
    });
  });
}

export function quotaOfTheGuide(attack: () => SustainedAttack): void {
  test("a quota ends it", async () => {
    const quota = guideBlock("ResourceQuota");
    await ok(attack().bed.kubectl(["apply", "-n", "mallory", "-f", "-"], quota));
    const another = set("mallory/another", [http("another.mallory.example.com")]);
    const create = async (): Promise<string> =>
      (await attack().mallory.create(`${OWN}/listenersets?dryRun=All`, another)).body;
    await expect.poll(create, WAIT).toMatch(/exceeded quota: listeners/);
  });
}
