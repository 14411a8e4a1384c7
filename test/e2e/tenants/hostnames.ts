import { describe, expect, test } from "vitest";
import { OWN, type SustainedAttack, WAIT } from "./sustained-attack.ts";
import { FRONTS, type Front, GATEWAY_API, HOST, http, route, set } from "./world.ts";

/** Mallory wants what is alice's: the same on either data plane. */
export function takingHostnames(attack: () => SustainedAttack): void {
  describe("taking a hostname", () => {
    test("as a child of what is alice's: only mallory's own object is collected", async () => {
      const path = `/apis/${GATEWAY_API}/namespaces/alice/listenersets/crown`;
      const crown = JSON.parse((await attack().admin.get(path)).body);
      const owner = { apiVersion: GATEWAY_API, kind: "ListenerSet", name: "crown", uid: crown.metadata.uid };
      const metadata = {
        name: "heir",
        ownerReferences: [{ ...owner, controller: true, blockOwnerDeletion: true }],
      };
      await attack().writes("listenersets", { ...set("mallory/heir", [http(HOST)]), metadata });
      await expect
        .poll(async () => (await attack().mallory.get(`${OWN}/listenersets/heir`)).status, WAIT)
        .toBe(404);
      expect((await attack().admin.get(path)).status).toBe(200);
    });

    test.each(["ALICE.example.com", "alice.example.com.", "alice.example.com:80", " alice.example.com"])(
      "spelt %j: the API server does not take it",
      async (hostname) => {
        const spelt = set("mallory/spelt", [http(hostname)]);
        expect((await attack().mallory.create(`${OWN}/listenersets`, spelt)).status).toBe(422);
      },
    );

    describe.each(FRONTS)("of a Gateway on $plane", (front) => takingFrom(attack, front));
  });
}

function takingFrom(attack: () => SustainedAttack, front: Front): void {
  const { plane, gateway, crown } = front;
  const forged = { creationTimestamp: "2001-01-01T00:00:00Z", uid: "00000000-0000-4000-8000-000000000000" };
  const own = (name: string, listener: object): object => set(`mallory/${name}`, [listener], gateway);
  const events = (): Promise<readonly string[]> => attack().eventsOf("infra", gateway);

  test.each([
    ["same", "the same hostname", {}],
    ["forged", "a date of creation long ago", { metadata: { name: `forged-${plane}`, ...forged } }],
    ["generated", "a generated name", { metadata: { generateName: "generated-" } }],
  ])("%s: with %s", async (name, _title, more) => {
    const made = await attack().writes("listenersets", { ...own(`${name}-${plane}`, http(HOST)), ...more });
    expect(made.metadata.creationTimestamp).not.toBe(forged.creationTimestamp);
    await expect
      .poll(() => attack().listenerOf(made.metadata.name), WAIT)
      .toMatchObject({ Accepted: "False/HostnameConflict", Conflicted: "True/HostnameConflict" });
    await expect
      .poll(events, WAIT)
      .toContain(
        `HostnameConflict: listener web of ListenerSet mallory/${made.metadata.name} wants what listener web of ListenerSet alice/${crown} holds`,
      );
    expect(await attack().servedBy(HOST, front)).toBe("alice");
  });

  test.each([
    ["above", "*.example.com"],
    ["everything", undefined],
  ])("%s, as a wildcard (%s): what alice names exactly stays hers", async (what, hostname) => {
    const name = `${what}-${plane}`;
    await attack().writes("listenersets", own(name, http(hostname)));
    await attack().writes(
      "httproutes",
      route(`mallory/${name}`, {
        parentRefs: [{ kind: "ListenerSet", name }],
        hostnames: [HOST, "other.example.com"],
        rules: [{ backendRefs: [{ name: "den", port: 8080 }] }],
      }),
    );
    await expect.poll(() => attack().listenerOf(name), WAIT).toMatchObject({ Programmed: "True/Programmed" });
    await expect.poll(() => attack().servedBy("other.example.com", front), WAIT).toBe("mallory");
    expect(await attack().servedBy(HOST, front)).toBe("alice");
  });

  test.each([
    ["tcp", "TCP", 80],
    ["plain", "HTTP", 443],
  ])("%s: by another protocol (%s) on port %d", async (what, protocol, port) => {
    const name = `${what}-${plane}`;
    const listener = { ...http(protocol === "TCP" ? undefined : HOST), protocol, port };
    await attack().writes("listenersets", own(name, listener));
    await expect
      .poll(() => attack().listenerOf(name), WAIT)
      .toMatchObject({ Conflicted: "True/ProtocolConflict" });
    await expect
      .poll(events, WAIT)
      .toContainEqual(
        expect.stringContaining(`ProtocolConflict: listener web of ListenerSet mallory/${name} `),
      );
  });

  test("admin: on a port that the data plane keeps for itself, which would show it to the world", async () => {
    const name = `admin-${plane}`;
    await attack().writes("listenersets", own(name, { ...http(undefined), port: 19901 }));
    await expect
      .poll(() => attack().listenerOf(name), WAIT)
      .toMatchObject({ Accepted: "False/PortUnavailable" });
    const ports = ["-o", "jsonpath={.spec.ports[*].port}"];
    const service = await attack().kubectl("get", "-n", "infra", `service/${gateway}-mergeway`, ...ports);
    expect(service.split(" ").sort()).toEqual(["443", "80"]);
  });

  test.each([
    ["crown", { kind: "ListenerSet", namespace: "alice", name: crown, sectionName: "web" }],
    ["guard", { namespace: "infra", name: gateway, sectionName: "guard" }],
  ])("by a route to the listener of another (%s)", async (what, parentRef) => {
    const name = `to-${what}-${plane}`;
    const rules = [{ backendRefs: [{ name: "den", port: 8080 }] }];
    await attack().writes("httproutes", route(`mallory/${name}`, { parentRefs: [parentRef], rules }));
    await expect
      .poll(() => attack().parentOf(name), WAIT)
      .toMatchObject({ Accepted: "False/NotAllowedByListeners" });
    expect(await attack().servedBy(HOST, front)).toBe("alice");
  });
}
