/**
 * A tenant who may write only in its own namespace, and means harm. Whatever mallory tries is refused, harms nobody else, and is seen by the platform team: in an Event of the Gateway, a
 * condition, a metric or the controller's log. All the while alice is served: her statuses at the end are those of the beginning. What the Gateway API itself allows, and
 * platforms may not want to, the policy of docs/guides/tenants.md refuses. Needs `npm run build`.
 */
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { readText } from "../chart/manifests.ts";
import { auditLogOf } from "../cluster/components.ts";
import { rightsUsed } from "./audit-rights.ts";
import { ok } from "./bed.ts";
import type { Outcome, Try } from "./stream-thief.ts";
import { OWN, Siege, type Stored, saidIn, WAIT } from "./tenant-siege.ts";
import { GATEWAY_API, HOST, http, MOST_LISTENERS, object, route, SECRETS, SYSTEM, set } from "./tenants.ts";

interface Readable extends Stored {
  readonly spec?: object;
  readonly regarding?: { readonly name: string };
  readonly note?: string;
}

/** The YAML of the guide, as it stands there. */
function guideBlocks(): readonly string[] {
  const text = readText("docs/guides/tenants.md");
  return [...text.matchAll(/^```yaml\n(.*?)^```$/gms)].map(([, block]) => block ?? "");
}

let siege: Siege;

beforeAll(async () => {
  siege = await Siege.begin("e2e-tenants");
});

afterAll(async () => {
  await siege?.end();
});

describe("taking a hostname", () => {
  const forged = { creationTimestamp: "2001-01-01T00:00:00Z", uid: "00000000-0000-4000-8000-000000000000" };

  test.each([
    ["same", "the same hostname", http(HOST), {}],
    ["forged", "a date of creation long ago", http(HOST), { metadata: { name: "forged", ...forged } }],
    ["generated", "a generated name", http(HOST), { metadata: { generateName: "generated-" } }],
  ])("%s: with %s", async (name, _title, listener, more) => {
    const made = await siege.writes("listenersets", { ...set(`mallory/${name}`, [listener]), ...more });
    expect(made.metadata.creationTimestamp).not.toBe(forged.creationTimestamp);
    await expect
      .poll(() => siege.listenerOf(made.metadata.name), WAIT)
      .toMatchObject({ Accepted: "False/HostnameConflict", Conflicted: "True/HostnameConflict" });
    await expect
      .poll(() => siege.eventsOf("infra", "shared"), WAIT)
      .toContain(
        `HostnameConflict: listener web of ListenerSet mallory/${made.metadata.name} wants what listener web of ListenerSet alice/crown holds`,
      );
    expect(await siege.servedBy()).toBe("alice");
  });

  test("as a child of what is alice's: only mallory's own object is collected", async () => {
    const crown = JSON.parse(
      (await siege.admin.get(`/apis/${GATEWAY_API}/namespaces/alice/listenersets/crown`)).body,
    );
    const owner = { apiVersion: GATEWAY_API, kind: "ListenerSet", name: "crown", uid: crown.metadata.uid };
    const metadata = {
      name: "heir",
      ownerReferences: [{ ...owner, controller: true, blockOwnerDeletion: true }],
    };
    await siege.writes("listenersets", { ...set("mallory/heir", [http(HOST)]), metadata });
    await expect
      .poll(async () => (await siege.mallory.get(`${OWN}/listenersets/heir`)).status, WAIT)
      .toBe(404);
    expect((await siege.admin.get(`/apis/${GATEWAY_API}/namespaces/alice/listenersets/crown`)).status).toBe(
      200,
    );
  });

  test.each(["ALICE.example.com", "alice.example.com.", "alice.example.com:80", " alice.example.com"])(
    "spelt %j: the API server does not take it",
    async (hostname) => {
      const { status } = await siege.mallory.create(
        `${OWN}/listenersets`,
        set("mallory/spelt", [http(hostname)]),
      );
      expect(status).toBe(422);
    },
  );

  test.each([
    ["above", "*.example.com"],
    ["everything", undefined],
  ])("%s, as a wildcard (%s): what alice names exactly stays hers", async (name, hostname) => {
    await siege.writes("listenersets", set(`mallory/${name}`, [http(hostname)]));
    await siege.writes(
      "httproutes",
      route(`mallory/${name}`, {
        parentRefs: [{ kind: "ListenerSet", name }],
        hostnames: [HOST, "other.example.com"],
        rules: [{ backendRefs: [{ name: "den", port: 8080 }] }],
      }),
    );
    await expect.poll(() => siege.listenerOf(name), WAIT).toMatchObject({ Programmed: "True/Programmed" });
    await expect.poll(() => siege.servedBy("other.example.com"), WAIT).toBe("mallory");
    expect(await siege.servedBy()).toBe("alice");
  });

  test.each([
    ["tcp", "TCP", 80],
    ["plain", "HTTP", 443],
  ])("%s: by another protocol (%s) on port %d", async (name, protocol, port) => {
    const listener = { ...http(protocol === "TCP" ? undefined : HOST), protocol, port };
    await siege.writes("listenersets", set(`mallory/${name}`, [listener]));
    await expect
      .poll(() => siege.listenerOf(name), WAIT)
      .toMatchObject({ Conflicted: "True/ProtocolConflict" });
    await expect
      .poll(() => siege.eventsOf("infra", "shared"), WAIT)
      .toContainEqual(
        expect.stringContaining(`ProtocolConflict: listener web of ListenerSet mallory/${name} `),
      );
  });

  test("admin: on a port that the data plane keeps for itself, which would show it to the world", async () => {
    await siege.writes("listenersets", set("mallory/admin", [{ ...http(undefined), port: 19901 }]));
    await expect
      .poll(() => siege.listenerOf("admin"), WAIT)
      .toMatchObject({ Accepted: "False/PortUnavailable" });
    const ports = "jsonpath={.spec.ports[*].port}";
    expect(await siege.kubectl("get", "-n", "infra", "service/shared-mergeway", "-o", ports)).not.toContain(
      "19901",
    );
  });

  test.each([
    ["crown", { kind: "ListenerSet", namespace: "alice", name: "crown", sectionName: "web" }],
    ["guard", { namespace: "infra", name: "shared", sectionName: "guard" }],
  ])("by a route to the listener of another (%s)", async (name, parentRef) => {
    const rules = [{ backendRefs: [{ name: "den", port: 8080 }] }];
    await siege.writes("httproutes", route(`mallory/to-${name}`, { parentRefs: [parentRef], rules }));
    await expect
      .poll(() => siege.parentOf(`to-${name}`), WAIT)
      .toMatchObject({ Accepted: "False/NotAllowedByListeners" });
    expect(await siege.servedBy()).toBe("alice");
  });
});

describe("referring to what is another's", () => {
  test("a Secret: no certificate, and no word on whether it is there", async () => {
    const tls = (name: string) => ({ certificateRefs: [{ namespace: "alice", name }] });
    const listener = { name: "web", port: 443, protocol: "HTTPS", hostname: "mallory.example.com" };
    await siege.writes("listenersets", set("mallory/real", [{ ...listener, tls: tls("jewels") }]));
    await siege.writes(
      "listenersets",
      set("mallory/guess", [{ ...listener, hostname: "m2.example.com", tls: tls("nothing") }]),
    );
    for (const name of ["real", "guess"])
      await expect
        .poll(() => siege.listenerOf(name), WAIT)
        .toMatchObject({ ResolvedRefs: "False/RefNotPermitted" });
    const told = async (name: string): Promise<string> => {
      const { status } = await siege.read(`${OWN}/listenersets/${name}`);
      return JSON.stringify(
        status?.listeners?.map(({ conditions }) => conditions.map(({ message }) => message)),
      );
    };
    expect((await told("real")).replaceAll("jewels", "X")).toBe(
      (await told("guess")).replaceAll("nothing", "X"),
    );
  });

  test.each([
    ["vault", { namespace: "alice", name: "vault", port: 8080 }, "RefNotPermitted"],
    ["absent", { namespace: "alice", name: "absent", port: 8080 }, "RefNotPermitted"],
    ["alias", { name: "alias", port: 8080 }, undefined],
  ])("a Service (%s): its traffic is not had", async (name, backendRef, reason) => {
    if (name === "alias") {
      const spec = {
        type: "ExternalName",
        externalName: "vault.alice.svc.cluster.local",
        ports: [{ port: 8080 }],
      };
      const alias = object("v1", "Service", "mallory/alias", { spec });
      expect((await siege.mallory.create("/api/v1/namespaces/mallory/services", alias)).status).toBe(201);
    }
    const host = `${name}.mallory.example.com`;
    await siege.writes("listenersets", set(`mallory/via-${name}`, [http(host)]));
    const parentRefs = [{ kind: "ListenerSet", name: `via-${name}` }];
    await siege.writes(
      "httproutes",
      route(`mallory/via-${name}`, { parentRefs, rules: [{ backendRefs: [backendRef] }] }),
    );
    const resolved = reason === undefined ? expect.stringMatching(/^False/) : `False/${reason}`;
    await expect.poll(() => siege.parentOf(`via-${name}`), WAIT).toMatchObject({ ResolvedRefs: resolved });
    await expect
      .poll(() => siege.listenerOf(`via-${name}`), WAIT)
      .toMatchObject({ Programmed: "True/Programmed" });
    await expect.poll(() => siege.servedBy(host), WAIT).toMatch(/^50[03]$/);
  });

  test("a Gateway that does not take her sets", async () => {
    const spec = { gatewayClassName: "mergeway", listeners: [{ ...http("p.example.com"), name: "p" }] };
    await ok(
      siege.bed.kubectl(
        ["apply", "-f", "-"],
        JSON.stringify(object(GATEWAY_API, "Gateway", "infra/private", { spec })),
      ),
    );
    await siege.writes(
      "listenersets",
      set("mallory/intruder", [http("intruder.example.com")], "infra/private"),
    );
    const conditions = async () =>
      saidIn((await siege.read(`${OWN}/listenersets/intruder`)).status?.conditions);
    await expect.poll(conditions, WAIT).toMatchObject({ Accepted: "False/NotAllowed" });
    await siege.kubectl("delete", "-n", "infra", "gateway/private");
  });

  test("parameters of the platform, and a ConfigMap of alice's, from a Gateway of her own", async () => {
    const ref = { group: "mergeway.dev", kind: "GatewayParameters", name: "platform" };
    const authorities = [{ group: "", kind: "ConfigMap", namespace: "alice", name: "jewels" }];
    const spec = {
      gatewayClassName: "mergeway",
      infrastructure: { parametersRef: ref },
      tls: { frontend: { default: { validation: { caCertificateRefs: authorities } } } },
      listeners: [http("own.example.com")],
    };
    await siege.writes("gateways", object(GATEWAY_API, "Gateway", "mallory/greedy", { spec }));
    const conditions = async () => saidIn((await siege.read(`${OWN}/gateways/greedy`)).status?.conditions);
    await expect.poll(conditions, WAIT).toMatchObject({ Accepted: "False/InvalidParameters" });
    expect((await siege.mallory.delete(`${OWN}/gateways/greedy`)).status).toBe(200);
  });
});

describe("from a pod of hers", () => {
  let outcomes: ReadonlyMap<string, Outcome>;
  let refusedBefore: Readonly<Record<string, number>>;
  const REASONS = ["token", "identity", "elsewhere"];

  async function refusals(): Promise<Readonly<Record<string, number>>> {
    const counts = REASONS.map((reason) =>
      siege.metric(`mergeway_stream_refusals_total{reason="${reason}"}`),
    );
    return Object.fromEntries((await Promise.all(counts)).map((count, index) => [REASONS[index], count]));
  }

  beforeAll(async () => {
    const spec = { gatewayClassName: "mergeway", listeners: [http("own.example.com")] };
    await siege.writes("gateways", object(GATEWAY_API, "Gateway", "mallory/own", { spec }));
    await siege.kubectl(
      "wait",
      "-n",
      "mallory",
      "--for=condition=Programmed",
      "gateway/own",
      "--timeout=120s",
    );
    const selector = "gateway.networking.k8s.io/gateway-name=own";
    const pods = JSON.parse(
      await siege.kubectl("get", "pods", "-n", "mallory", "-l", selector, "-o", "json"),
    );
    const pod = pods.items[0].metadata as { name: string; uid: string };
    const ours = "mergeway.dev/controller";
    const [dataPlane = "", victim = ""] = (
      await siege.kubectl(
        ...["get", "pods", "-n", "infra", "-l", "gateway.networking.k8s.io/gateway-name=shared"],
        ...["-o", "jsonpath={.items[0].status.podIP} {.items[0].metadata.name}"],
      )
    ).split(" ");
    const shared = { gateway: "infra/shared", pod: victim };
    const mine = { gateway: "mallory/own", pod: pod.name };
    const bound = await siege.tokenOf("own-mergeway", ours, pod);
    const tries: readonly Try[] = [
      { name: "no token", plan: shared },
      { name: "nonsense", plan: { ...shared, token: "nonsense" } },
      { name: "her token for the API server", plan: { ...shared, tokenFile: "/tokens/api" } },
      { name: "her token for the controller", plan: { ...shared, tokenFile: "/tokens/ours" } },
      { name: "the token of her Gateway's pod", plan: { ...shared, token: bound } },
      {
        name: "her Gateway's account, but no pod",
        plan: { ...mine, token: await siege.tokenOf("own-mergeway", ours) },
      },
      { name: "a pod of her Gateway, replayed", plan: { ...mine, token: bound } },
      { name: "her pod's token as another pod", plan: { ...mine, pod: "another", token: bound } },
      { name: "metrics", url: `http://${siege.controller}:9090/metrics` },
      ...["/", "/metrics/..", "/debug", "/config"].map((path) => ({
        name: `9090${path}`,
        url: `http://${siege.controller}:9090${path}`,
      })),
      ...["/", "/config", "/metrics"].map((path) => ({
        name: `8081${path}`,
        url: `http://${siege.controller}:8081${path}`,
      })),
      ...["/", "/plan", "/config", "/metrics"].map((path) => ({
        name: `19901${path}`,
        url: `http://${dataPlane}:19901${path}`,
      })),
    ];
    refusedBefore = await refusals();
    outcomes = await siege.runThief(tries);
  });

  test.each([
    ["no token", 401],
    ["nonsense", 403],
    ["her token for the API server", 403],
    ["her token for the controller", 403],
    ["the token of her Gateway's pod", 403],
    ["her Gateway's account, but no pod", 403],
    ["a pod of her Gateway, replayed", 409],
    ["her pod's token as another pod", 403],
  ])("the plan of a Gateway is not had with %s", (name, status) => {
    expect(outcomes.get(name)).toEqual({ name, status, body: "" });
  });

  test("every try is counted and logged", async () => {
    const after = await refusals();
    const more = Object.fromEntries(
      REASONS.map((reason) => [reason, (after[reason] ?? 0) - (refusedBefore[reason] ?? 0)]),
    );
    // Pods of Gateways that are just being deleted knock in vain, too.
    expect(more).toEqual({
      token: 1,
      identity: expect.toSatisfy((count: number) => count >= 6),
      elsewhere: 1,
    });
    const log = await siege.log();
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

  test("no other port has anything to tell", () => {
    const others = [...outcomes.values()].filter(({ name }) => /^\d/.test(name));
    expect(others.length).toBeGreaterThan(8);
    for (const { name, status, body } of others)
      expect([name, status, body.length < 10]).toEqual([name, 404, true]);
  });
});

describe("reading what is another's", () => {
  test("nothing that mallory can read says anything of alice but what she wrote herself", async () => {
    const listed = async (path: string): Promise<readonly Readable[]> => {
      const { status, body } = await siege.mallory.get(path);
      expect(status).toBe(200);
      return (JSON.parse(body) as { items: readonly Readable[] }).items;
    };
    const plurals = ["listenersets", "httproutes", "gateways"];
    const objects = (await Promise.all(plurals.map((plural) => listed(`${OWN}/${plural}`)))).flat();
    // References come back in messages as they were given, so what refers to alice's things is left out.
    const refers = ({ spec }: Readable): boolean => SECRETS.test(JSON.stringify(spec));
    const guilty = new Set(objects.filter(refers).map(({ metadata }) => metadata.name));
    const innocent = objects.filter(({ metadata }) => !guilty.has(metadata.name));
    const names = new Set(innocent.map(({ metadata }) => metadata.name));
    expect([...names]).toEqual(expect.arrayContaining(["same", "forged", "tcp", "above", "own"]));
    const events = await listed("/apis/events.k8s.io/v1/namespaces/mallory/events");
    const told = [
      ...innocent.map(({ status }) => JSON.stringify(status ?? "")),
      ...events.filter(({ regarding }) => names.has(regarding?.name ?? "")).map(({ note }) => note ?? ""),
    ];
    expect(told.filter((words) => SECRETS.test(words))).toEqual([]);
    expect(told.filter((words) => words.includes("conflict")).length).toBeGreaterThan(4);
    for (const path of ["alice/listenersets", "infra/gateways"])
      expect((await siege.mallory.get(`/apis/${GATEWAY_API}/namespaces/${path}`)).status).toBe(403);
  });
});

describe("what the Gateway API allows, and the policy of the guide does not", () => {
  beforeAll(async () => {
    // Older than what alice is about to have.
    await siege.writes("listenersets", set("mallory/older", [http("innocent.mallory.example.com")]));
    const alice = set("alice/younger", [
      http("late.example.com"),
      { ...http("*.alice.example.com"), name: "all" },
    ]);
    await ok(siege.bed.kubectl(["apply", "-f", "-"], JSON.stringify(alice)));
    await siege.kubectl(
      "wait",
      "-n",
      "alice",
      "--for=condition=Programmed",
      "listenerset/younger",
      "--timeout=60s",
    );
    const [policy = ""] = guideBlocks();
    await ok(siege.bed.kubectl(["apply", "-f", "-"], policy));
    const annotate = [
      "annotate",
      "namespace",
      "mallory",
      "example.com/hostnames=mallory.example.com,*.mallory.example.com",
    ];
    await siege.kubectl(...annotate);
    // A policy takes a moment to be in force.
    const probe = set("mallory/probe", [http("probe.example.com")]);
    await vi.waitUntil(
      async () => (await siege.mallory.create(`${OWN}/listenersets?dryRun=All`, probe)).status === 422,
      WAIT,
    );
  });

  afterAll(async () => {
    await siege.kubectl("delete", "validatingadmissionpolicybinding", "tenant-listeners");
  });

  const REFUSED = /a listener has a hostname that this namespace was not given/;

  test("writing another's hostname into an older set", async () => {
    const { status, body } = await siege.mallory.patch(`${OWN}/listenersets/older`, {
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
    const { status, body } = await siege.mallory.create(
      `${OWN}/listenersets`,
      set("mallory/more", [listener]),
    );
    expect(status).toBe(422);
    expect(body).toMatch(reason);
  });

  test("what was given may be had", async () => {
    await siege.writes("listenersets", set("mallory/given", [http("given.mallory.example.com")]));
    await expect.poll(() => siege.listenerOf("given"), WAIT).toMatchObject({ Accepted: "True/Accepted" });
  });
});

describe("exhausting the controller", { timeout: 600_000 }, () => {
  /** Thousands of objects take their time where a machine is small. */
  const LONG = { timeout: 300_000, interval: 500 };
  const RSS = "process_resident_memory_bytes";
  const MEGABYTE = 1024 * 1024;

  test("by fighting over a status", async () => {
    const path = `${OWN}/listenersets/contested`;
    const writesOf = 'mergeway_status_writes_total{kind="ListenerSet",result="written"}';
    const fightsOf = 'mergeway_status_fights_total{kind="ListenerSet"}';
    await siege.writes("listenersets", set("mallory/contested", [http(HOST)]));
    const accepted = async () => saidIn((await siege.read(path)).status?.conditions).Accepted;
    await expect.poll(accepted, WAIT).toMatch(/^False/);
    const [writes, fights] = [await siege.metric(writesOf), await siege.metric(fightsOf)];
    const lie = {
      type: "Accepted",
      status: "True",
      reason: "Accepted",
      message: "mine {{n}}",
      lastTransitionTime: "2026-01-01T00:00:00Z",
    };
    // However quick or slow the machine is: she does not rest before she was contradicted three times.
    let lies = 0;
    for (let floods = 0; floods < 200; floods++) {
      const times = { count: 20, parallel: 2 };
      const { statuses } = await siege.mallory.flood(times, "PATCH", `${path}/status`, {
        status: { conditions: [lie] },
      });
      expect(statuses).toEqual({ 200: times.count });
      lies += times.count;
      if (lies >= 200 && (await siege.metric(fightsOf)) - fights >= 3) break;
    }
    expect((await siege.metric(fightsOf)) - fights).toBeGreaterThanOrEqual(3);
    await expect
      .poll(() => siege.eventsOf("mallory", "contested"), LONG)
      .toContainEqual(expect.stringMatching(/^StatusContested/));
    expect((await siege.metric(writesOf)) - writes).toBeLessThan(lies / 5);
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
    const earlier = await siege.metric(RSS);
    const { statuses } = await siege.mallory.flood(
      { count: 100, parallel: 4 },
      "POST",
      `${OWN}/listenersets`,
      manifest,
    );
    expect(statuses).toEqual({ 201: 100 });
    await expect
      .poll(() => siege.listenerOf("large-99"), LONG)
      .toMatchObject({ Accepted: expect.any(String) });
    expect((await siege.metric(RSS)) - earlier).toBeLessThan(200 * MEGABYTE);
  });

  test("with ten thousand sets, while alice is served and heard", async () => {
    const manifest = set("mallory/many-{{n}}", [http("n{{n}}.many.example.com")]);
    const { statuses, seconds } = await siege.mallory.flood(
      { count: 10_000, parallel: 48 },
      "POST",
      `${OWN}/listenersets`,
      manifest,
    );
    expect(statuses).toEqual({ 201: 10_000 });
    const alice = set("alice/second", [http("second.alice.example.com")]);
    await ok(siege.bed.kubectl(["apply", "-f", "-"], JSON.stringify(alice)));
    const second = async (): Promise<Stored> =>
      JSON.parse(
        (await siege.admin.get(`/apis/${GATEWAY_API}/namespaces/alice/listenersets/second`)).body,
      ) as Stored;
    await expect
      .poll(async () => (await second()).status?.listeners?.length, { ...LONG, interval: 50 })
      .toBe(1);
    const backlog = await siege.metric("mergeway_status_backlog");
    const resident = Math.round((await siege.metric(RSS)) / MEGABYTE);
    console.log(
      `10,000 sets in ${seconds.toFixed(0)} s; backlog ${backlog} when alice was heard; ${resident} MiB`,
    );
    expect(backlog).toBeLessThan(10_500);
    expect(resident).toBeLessThan(900);
    expect(await siege.servedBy()).toBe("alice");
  });

  test("of which no more are served than the platform allows, and the others say so", async () => {
    const path = "/apis/gateway.networking.k8s.io/v1/namespaces/infra/gateways/shared";
    const attached = async (): Promise<number> =>
      (JSON.parse((await siege.admin.get(path)).body) as { status: { attachedListenerSets: number } }).status
        .attachedListenerSets;
    await expect.poll(attached, LONG).toBeLessThanOrEqual(MOST_LISTENERS);
    await expect
      .poll(() => siege.listenerOf("many-2500"), LONG)
      .toMatchObject({ Accepted: "False/TooManyListeners" });
    expect(await siege.servedBy("n2500.many.example.com")).not.toBe("mallory");
  });

  test("with thousands of routes", async () => {
    const rules = Array.from({ length: 8 }, (_, i) => ({
      matches: [{ path: { type: "RegularExpression", value: `/(a+)+${i}$` } }],
      backendRefs: [{ name: "den", port: 8080 }],
    }));
    const manifest = route("mallory/many-{{n}}", {
      parentRefs: [{ kind: "ListenerSet", name: "above" }],
      rules,
    });
    const { statuses } = await siege.mallory.flood(
      { count: 2_000, parallel: 32 },
      "POST",
      `${OWN}/httproutes`,
      manifest,
    );
    expect(statuses).toEqual({ 201: 2_000 });
    await expect.poll(() => siege.parentOf("many-0"), LONG).toMatchObject({ Accepted: "True/Accepted" });
    expect(await siege.servedBy()).toBe("alice");
    expect((await siege.metric(RSS)) / MEGABYTE).toBeLessThan(900);
  });
});

test("a quota ends it", async () => {
  const [, quota = ""] = guideBlocks();
  await ok(siege.bed.kubectl(["apply", "-n", "mallory", "-f", "-"], quota));
  const another = set("mallory/another", [http("another.mallory.example.com")]);
  const create = async (): Promise<string> =>
    (await siege.mallory.create(`${OWN}/listenersets?dryRun=All`, another)).body;
  await expect.poll(create, WAIT).toMatch(/exceeded quota: listeners/);
});

describe("in the end", () => {
  test("alice's statuses are what they were, and not one of her requests has failed", async () => {
    expect(await siege.statusesOfAlice()).toBe(siege.before);
    const { sent, failed, reasons } = JSON.parse(await siege.endLoad()) as {
      sent: number;
      failed: number;
      reasons: string[];
    };
    console.log(`${sent} requests of alice's, ${failed} failed`);
    expect(reasons).toEqual([]);
    expect(failed).toBe(0);
    expect(sent).toBeGreaterThan(100);
  });

  test("the controller is the one that began, led all the time, and was refused nothing", async () => {
    const restarts = "jsonpath={.items[*].status.containerStatuses[*].restartCount}";
    expect(await siege.kubectl("get", "pods", "-n", SYSTEM, "-o", restarts)).toBe("0");
    expect(await siege.metric("mergeway_leader")).toBe(1);
    const { refused, missing } = await rightsUsed(auditLogOf(siege.bed.cluster));
    expect({ refused, missing }).toEqual({ refused: [], missing: [] });
  });

  test("propagation was measured all the while", async () => {
    for (const stage of ["sent", "acknowledged", "status"]) {
      const count = await siege.metric(`mergeway_propagation_seconds_count{stage="${stage}"}`);
      const sum = await siege.metric(`mergeway_propagation_seconds_sum{stage="${stage}"}`);
      console.log(`${stage}: ${count} changes, ${((sum / count) * 1000).toFixed(0)} ms on average`);
      expect(count).toBeGreaterThan(10);
      expect(sum).toBeGreaterThan(0);
    }
  });
});
