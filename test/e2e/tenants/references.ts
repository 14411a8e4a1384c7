import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { auditLogOf } from "../../../tools/cluster/components.ts";
import { OWN, type SustainedAttack, saidIn, WAIT } from "./sustained-attack.ts";
import { FRONTS, type Front, GATEWAY_API, http, object, route, set } from "./world.ts";

export function referringToOthers(attack: () => SustainedAttack): void {
  describe("referring to what is another's", () => {
    test("a Secret: no certificate, no word on whether it is there, and it is not even read", async () => {
      const tls = (name: string) => ({ certificateRefs: [{ namespace: "alice", name }] });
      const listener = { name: "web", port: 443, protocol: "HTTPS", hostname: "mallory.example.com" };
      await attack().writes("listenersets", set("mallory/real", [{ ...listener, tls: tls("heirloom") }]));
      await attack().writes(
        "listenersets",
        set("mallory/guess", [{ ...listener, hostname: "m2.example.com", tls: tls("nothing") }]),
      );
      for (const name of ["real", "guess"])
        await expect
          .poll(() => attack().listenerOf(name), WAIT)
          .toMatchObject({ ResolvedRefs: "False/RefNotPermitted" });
      const told = async (name: string): Promise<string> => {
        const { status } = await attack().read(`${OWN}/listenersets/${name}`);
        return JSON.stringify(
          status?.listeners?.map(({ conditions }) => conditions.map(({ message }) => message)),
        );
      };
      expect((await told("real")).replaceAll("heirloom", "X")).toBe(
        (await told("guess")).replaceAll("nothing", "X"),
      );
      const readBy = (secret: string): boolean =>
        readFileSync(auditLogOf(attack().bed.cluster), "utf8")
          .split("\n")
          .some((line) => line.includes("mergeway-system:mergeway") && line.includes(`/secrets/${secret}"`));
      expect(readBy("jewels")).toBe(true);
      expect(readBy("heirloom")).toBe(false);
    });

    test("a Gateway that does not take her sets", async () => {
      const spec = { gatewayClassName: "mergeway", listeners: [{ ...http("p.example.com"), name: "p" }] };
      await attack().platform(object(GATEWAY_API, "Gateway", "infra/private", { spec }));
      await attack().writes(
        "listenersets",
        set("mallory/intruder", [http("intruder.example.com")], "private"),
      );
      const conditions = async () =>
        saidIn((await attack().read(`${OWN}/listenersets/intruder`)).status?.conditions);
      await expect.poll(conditions, WAIT).toMatchObject({ Accepted: "False/NotAllowed" });
      await attack().kubectl("delete", "-n", "infra", "gateway/private");
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
      await attack().writes("gateways", object(GATEWAY_API, "Gateway", "mallory/greedy", { spec }));
      const conditions = async () =>
        saidIn((await attack().read(`${OWN}/gateways/greedy`)).status?.conditions);
      await expect.poll(conditions, WAIT).toMatchObject({ Accepted: "False/InvalidParameters" });
      expect((await attack().mallory.delete(`${OWN}/gateways/greedy`)).status).toBe(200);
    });

    describe.each(FRONTS)("through a Gateway on $plane", (front) => throughGateway(attack, front));
  });
}

function throughGateway(attack: () => SustainedAttack, front: Front): void {
  const { plane, gateway } = front;
  const core = "/api/v1/namespaces/mallory";

  async function service(name: string, spec: object): Promise<void> {
    const manifest = object("v1", "Service", `mallory/${name}`, { spec });
    expect((await attack().mallory.create(`${core}/services`, manifest)).status).toBe(201);
  }

  async function routed(name: string, backendRef: object): Promise<string> {
    const host = `${name}.mallory.example.com`;
    await attack().writes("listenersets", set(`mallory/${name}`, [http(host)], gateway));
    const parentRefs = [{ kind: "ListenerSet", name }];
    const rules = [{ backendRefs: [backendRef] }];
    await attack().writes("httproutes", route(`mallory/${name}`, { parentRefs, rules }));
    await expect.poll(() => attack().listenerOf(name), WAIT).toMatchObject({ Programmed: "True/Programmed" });
    return host;
  }

  test.each([
    ["vault", { namespace: "alice", name: "vault", port: 8080 }, "False/RefNotPermitted"],
    ["absent", { namespace: "alice", name: "absent", port: 8080 }, "False/RefNotPermitted"],
    ["alias", { name: `alias-${plane}`, port: 8080 }, expect.stringMatching(/^False/)],
    ["itself", { name: `itself-${plane}`, port: 19901 }, expect.stringMatching(/^False/)],
  ])("a Service (%s): its traffic is not had", async (what, backendRef, resolved) => {
    const aliases: Readonly<Record<string, string>> = {
      alias: "vault.alice.svc.cluster.local",
      itself: "localhost",
    };
    const externalName = aliases[what];
    if (externalName !== undefined)
      await service(`${what}-${plane}`, { type: "ExternalName", externalName, ports: [{ port: 8080 }] });
    const host = await routed(`via-${what}-${plane}`, backendRef);
    await expect
      .poll(() => attack().parentOf(`via-${what}-${plane}`), WAIT)
      .toMatchObject({ ResolvedRefs: resolved });
    await expect.poll(() => attack().servedBy(host, front), WAIT).toMatch(/^50[03]$/);
  });

  test.each(["127.0.0.1", "169.254.169.254", "0.0.0.0"])(
    "an EndpointSlice with %s, where a data plane might ask itself: the API server does not take it",
    async (address) => {
      const slice = endpointSlice(`inward-${plane}`, address);
      const path = "/apis/discovery.k8s.io/v1/namespaces/mallory/endpointslices";
      expect((await attack().mallory.create(path, slice)).status).toBe(422);
    },
  );

  test("an EndpointSlice with the address of the data plane's pod: the port that it keeps has nothing to tell there either", async () => {
    const name = `mirror-${plane}`;
    const { address } = await attack().podOf("infra", gateway);
    await service(name, { ports: [{ port: 19901 }] });
    const path = "/apis/discovery.k8s.io/v1/namespaces/mallory/endpointslices";
    expect((await attack().mallory.create(path, endpointSlice(name, address))).status).toBe(201);
    const host = await routed(name, { name, port: 19901 });
    await expect.poll(async () => (await attack().ask(front, host, "/readyz")).status, WAIT).toBe(200);
    for (const said of ["/", "/metrics", "/config_dump", "/certs", "/clusters", "/stats", "/server_info"]) {
      const { status, body } = await attack().ask(front, host, said);
      expect([said, status, body.length < 10]).toEqual([said, 404, true]);
    }
    for (const act of ["/drain", "/quitquitquit", "/healthcheck/fail"])
      expect((await attack().ask(front, host, act)).status).toBeGreaterThanOrEqual(403);
    expect(await attack().servedBy(undefined, front)).toBe("alice");
  });
}

function endpointSlice(service: string, address: string): object {
  return {
    ...object("discovery.k8s.io/v1", "EndpointSlice", `mallory/${service}`, {}),
    metadata: { namespace: "mallory", name: service, labels: { "kubernetes.io/service-name": service } },
    addressType: "IPv4",
    endpoints: [{ addresses: [address] }],
    ports: [{ port: 19901, protocol: "TCP" }],
  };
}
