import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { parse } from "yaml";
import { ok } from "../../../tools/cluster/bed.ts";
import { ROOT, readText } from "../../../tools/cluster/chart.ts";
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

/**
 * The TenantPolicy of the guide, for the Gateways of this world. Without its quota, which mallory
 * has used up by now.
 */
function policyOfTheGuide(): object {
  const policy = parse(guideBlock("TenantPolicy")) as {
    readonly metadata: object;
    readonly spec: { readonly rules: readonly { readonly quota?: object }[] };
  };
  const targetRefs = FRONTS.map(({ gateway }) => ({ kind: "Gateway", name: gateway }));
  return {
    ...policy,
    metadata: { ...policy.metadata, namespace: "infra" },
    spec: { ...policy.spec, targetRefs, rules: policy.spec.rules.map(({ quota: _, ...rule }) => rule) },
  };
}

export function underThePolicyOfTheGuide(attack: () => SustainedAttack): void {
  const late = "late.alice.example.com";
  const attempts: readonly (readonly [title: string, listener: object, reason: string])[] = [
    ["the same hostname", http(HOST), "HostnameNotAllowed"],
    ["a wildcard around another's hostname", http("*.example.com"), "HostnameNotAllowed"],
    ["everything", http(undefined), "HostnameNotAllowed"],
    ["a name out of another's wildcard", http("login.alice.example.com"), "HostnameNotAllowed"],
    ["another's hostname on another port", { ...http(HOST), port: 8080 }, "PortNotAllowed"],
    ["a port of one's own", { ...http("mallory.example.com"), port: 8080 }, "PortNotAllowed"],
    ["a reserved name", http("login.example.com"), "HostnameNotAllowed"],
    [
      "a protocol that has no hostnames",
      { ...http(undefined), protocol: "TCP", port: 9000 },
      "PortNotAllowed",
    ],
  ];

  describe("what the Gateway API allows, and the TenantPolicy of the guide does not", () => {
    beforeAll(async () => {
      // Older than what alice is about to have.
      await attack().writes("listenersets", set("mallory/older", [http("innocent.mallory.example.com")]));
      const wildcard = { ...http("*.alice.example.com"), name: "all" };
      await attack().platform(set("alice/younger", [http(late), wildcard]));
      const programmed = ["--for=condition=Programmed", "listenerset/younger", "--timeout=180s"];
      await attack().kubectl("wait", "-n", "alice", ...programmed);
      await attack().platform(policyOfTheGuide());
    });

    afterAll(async () => {
      await attack().kubectl("delete", "tenantpolicy", "-n", "infra", "tenants");
      await attack().kubectl("delete", "listenerset", "-n", "alice", "younger");
    });

    const refusal = (reason: string): object => ({ Accepted: `False/${reason}` });

    describe.each(FRONTS)("in the merge of a Gateway on $plane", (front) => {
      test.each(attempts)("%s", async (title, listener, reason) => {
        const name = `not-${title.replaceAll(/[^a-z]+/g, "-")}-${front.plane}`;
        await attack().writes("listenersets", set(`mallory/${name}`, [listener], front.gateway));
        await expect.poll(() => attack().listenerOf(name), WAIT).toMatchObject(refusal(reason));
        expect(await attack().servedBy(HOST, front)).toBe("alice");
      });
    });

    test("writing another's hostname into an older set takes nothing from it", async () => {
      const path = `${OWN}/listenersets/older`;
      const patched = await attack().mallory.patch(path, { spec: { listeners: [http(late)] } });
      expect(patched.status).toBe(200);
      const said = (): Promise<unknown> => attack().listenerOf("older");
      await expect.poll(said, WAIT).toMatchObject(refusal("HostnameNotAllowed"));
      const { status } = JSON.parse(
        await attack().kubectl("get", "listenerset", "-n", "alice", "younger", "-o", "json"),
      ) as Stored;
      expect(status?.conditions).toContainEqual(
        expect.objectContaining({ type: "Programmed", status: "True" }),
      );
    });

    describe("at admission", () => {
      beforeAll(async () => {
        const program = [process.execPath, join(ROOT, "src/main.ts"), "policy", "render"];
        const rendered = await ok(attack().bed.run(program));
        await ok(attack().bed.kubectl(["apply", "-f", "-"], rendered));
        await probeIs(422);
      });

      afterAll(async () => {
        for (const kind of ["validatingadmissionpolicybinding", "validatingadmissionpolicy"])
          await attack().kubectl("delete", kind, "-l", "app.kubernetes.io/name=mergeway");
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

      test.each(attempts)("%s", async (_title, listener, reason) => {
        const more = set("mallory/more", [listener]);
        const { status, body } = await attack().mallory.create(`${OWN}/listenersets`, more);
        expect(status).toBe(422);
        expect(body).toContain(reason);
        expect(body).not.toMatch(SECRETS);
      });

      test("writing another's hostname into an older set", async () => {
        const { status, body } = await attack().mallory.patch(`${OWN}/listenersets/older`, {
          spec: { listeners: [http(`x.${late}`)] },
        });
        expect(status).toBe(422);
        expect(body).toContain("HostnameNotAllowed");
      });

      test("what was given may be had", async () => {
        await attack().writes("listenersets", set("mallory/given", [http("given.mallory.example.com")]));
        await expect
          .poll(() => attack().listenerOf("given"), WAIT)
          .toMatchObject({ Accepted: "True/Accepted" });
      });
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
