/**
 * Authentication of a TrafficPolicy in a cluster, on both data planes: Secrets that are read on
 * demand, change and vanish, keys of an issuer, and a service of another namespace that is asked.
 */
import { hashSync } from "bcryptjs";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ok } from "../../tools/cluster/bed.ts";
import { eventually, GATEWAY_API, type Named, ServedCluster, said } from "./support/served-cluster.ts";

const OWN_API = "mergeway.dev/v1alpha1";
const PLANES = ["envoy", "embedded"] as const;
type Plane = (typeof PLANES)[number];

let cluster: ServedCluster;
const addresses = new Map<Plane, string>();

function named(apiVersion: string, kind: string, namespace: string, name: string): Named {
  return { apiVersion, kind, metadata: { namespace, name } };
}

function hostOf(plane: Plane): string {
  return `shop.${plane}.example.com`;
}

/** A small authenticator: who says `Bearer good` is ann; others are sent to log in. */
const AUTHENTICATOR = `require("node:http").createServer(({ headers, url }, response) => {
  if (headers.authorization === "Bearer good") response.writeHead(202, { "x-user": "ann" }).end();
  else response.writeHead(302, { location: "https://login.example/?rd=" + headers["x-forwarded-uri"] }).end(url);
}).listen(4180)`;

async function authenticatorObjects(): Promise<readonly object[]> {
  const controller = await ok(
    cluster.bed.kubectl([
      ...["get", "deployments", "-A", "-l", "app.kubernetes.io/name=mergeway"],
      ...["-o", "jsonpath={.items[0].spec.template.spec.containers[0].image}"],
    ]),
  );
  const labels = { app: "login" };
  const command = ["/usr/bin/node", "-e", AUTHENTICATOR];
  return [
    { apiVersion: "v1", kind: "Namespace", metadata: { name: "identity" } },
    {
      ...named("apps/v1", "Deployment", "identity", "login"),
      spec: {
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: { containers: [{ name: "login", image: controller.trim(), command }] },
        },
      },
    },
    {
      ...named("v1", "Service", "identity", "login"),
      spec: { selector: labels, ports: [{ port: 4180 }] },
    },
  ];
}

function trafficPolicy(plane: Plane, settings: object): Named & { readonly spec: object } {
  return {
    ...named(OWN_API, "TrafficPolicy", "team", plane),
    spec: { targetRefs: [{ kind: "ListenerSet", name: plane }], ...settings },
  };
}

function secret(name: string, stringData: Readonly<Record<string, string>>): Named {
  return { ...named("v1", "Secret", "team", name), stringData } as Named;
}

interface Reply {
  readonly code: number;
  readonly text: string;
}

async function curl(plane: Plane, ...flags: readonly string[]): Promise<Reply> {
  const host = hostOf(plane);
  const { out } = await cluster.bed.run([
    ...["curl", "-sS", "-i", "-w", "\n%{http_code}", "--max-time", "20"],
    ...["--resolve", `${host}:80:${addresses.get(plane)}`, ...flags, `http://${host}/a?b=c`],
  ]);
  return { code: Number(out.split("\n").at(-1)), text: out };
}

async function answers(plane: Plane, code: number, ...flags: readonly string[]): Promise<Reply> {
  return await eventually(async () => {
    const reply = await curl(plane, ...flags);
    expect(reply.code, flags.join(" ")).toBe(code);
    return reply;
  }, 120);
}

async function says(policy: Named, wanted: Readonly<Record<string, string>>): Promise<void> {
  await eventually(async () => {
    const { status } = (await cluster.get(policy)) as { status?: { ancestors?: readonly object[] } };
    const [ancestor] = status?.ancestors ?? [];
    expect(said(ancestor as Parameters<typeof said>[0])).toMatchObject(wanted);
  }, 120);
}

const APPLIED = {
  Accepted: "True/Accepted",
  ResolvedRefs: "True/ResolvedRefs",
  Programmed: "True/Programmed",
};

beforeAll(async () => {
  cluster = await ServedCluster.up("e2e-authentication");
  await cluster.apply({ apiVersion: "v1", kind: "Namespace", metadata: { name: "infra" } });
  await cluster.apply(...(await authenticatorObjects()));
  await cluster.namespaceWithBackend("team");
  for (const plane of PLANES) {
    const parameters = { group: "mergeway.dev", kind: "GatewayParameters", name: plane };
    const parent = { group: "gateway.networking.k8s.io", kind: "Gateway", namespace: "infra", name: plane };
    const set = { group: "gateway.networking.k8s.io", kind: "ListenerSet", name: plane };
    await cluster.apply(
      {
        ...named(OWN_API, "GatewayParameters", "infra", plane),
        spec: { dataPlane: plane, service: { type: "ClusterIP" } },
      },
      {
        ...named(GATEWAY_API, "Gateway", "infra", plane),
        spec: {
          gatewayClassName: "mergeway",
          infrastructure: { parametersRef: parameters },
          allowedListeners: { namespaces: { from: "All" } },
          listeners: [{ name: "own", port: 80, protocol: "HTTP", hostname: `own.${plane}.example.com` }],
        },
      },
      {
        ...named(GATEWAY_API, "ListenerSet", "team", plane),
        spec: {
          parentRef: parent,
          listeners: [{ name: "web", port: 80, protocol: "HTTP", hostname: hostOf(plane) }],
        },
      },
      {
        ...named(GATEWAY_API, "HTTPRoute", "team", plane),
        spec: { parentRefs: [set], rules: [{ backendRefs: [{ name: "echo", port: 8080 }] }] },
      },
    );
  }
  await ok(cluster.bed.kubectl(["rollout", "status", "-n", "identity", "deploy/login", "--timeout=240s"]));
  for (const plane of PLANES) {
    addresses.set(plane, await cluster.addressOf(named(GATEWAY_API, "Gateway", "infra", plane)));
    await answers(plane, 200);
  }
});

afterAll(async () => {
  await cluster?.down();
});

describe.each(PLANES)("on the data plane %s", (plane) => {
  test("users of a Secret pass, a changed Secret holds, and without it nobody passes", async () => {
    const users = secret(`users-${plane}`, { ".htpasswd": "ann:{SHA}2PRZAyDhNDqRW2OUFwZQqPNdaSY=\n" });
    const policy = trafficPolicy(plane, {
      overrides: { basicAuth: { secretRef: { name: `users-${plane}` }, userHeader: "X-User" } },
    });
    await cluster.apply(policy);
    await says(policy, { ResolvedRefs: "False/InvalidSecretRef" });
    await answers(plane, 500, "-u", "ann:sha");
    await cluster.apply(users);
    await says(policy, APPLIED);
    const { text } = await answers(plane, 200, "-u", "ann:sha", "-H", "X-User: root");
    expect(text).toContain('"ann"');
    expect(text).not.toContain('"root"');
    expect((await curl(plane)).code).toBe(401);
    expect((await curl(plane, "-u", "ann:wrong")).code).toBe(401);
    for (const host of [hostOf(plane).toUpperCase(), `${hostOf(plane)}.`])
      expect((await curl(plane, "-H", `Host: ${host}`)).code, host).toBe(401);
    await cluster.apply(secret(`users-${plane}`, { ".htpasswd": `ann:${hashSync("other", 4)}\n` }));
    await answers(plane, 200, "-u", "ann:other");
    expect((await curl(plane, "-u", "ann:sha")).code).toBe(401);
    await cluster.remove(users);
    await answers(plane, 500, "-u", "ann:other");
    await says(policy, { ResolvedRefs: "False/InvalidSecretRef" });
    await cluster.remove(policy);
    await answers(plane, 200);
  });

  test("clients of a Secret pass with their keys", async () => {
    const clients = secret(`clients-${plane}`, { partner: "key-of-the-partner" });
    const policy = trafficPolicy(plane, {
      defaults: {
        apiKeys: {
          secretRef: { name: `clients-${plane}` },
          headers: ["X-Api-Key"],
          clientHeader: "X-Client",
        },
      },
    });
    await cluster.apply(clients, policy);
    await says(policy, APPLIED);
    await answers(plane, 401, "-H", "X-Api-Key: wrong");
    const { text } = await answers(plane, 200, "-H", "X-Api-Key: key-of-the-partner");
    expect(text).toContain('"partner"');
    expect(text).not.toContain("key-of-the-partner");
    await cluster.remove(policy, clients);
    await answers(plane, 200);
  });

  test("tokens of an issuer pass whose keys are in a ConfigMap", async () => {
    const { publicKey, privateKey } = await generateKeyPair("ES256");
    const jwks = JSON.stringify({ keys: [await exportJWK(publicKey)] });
    const keys = { ...named("v1", "ConfigMap", "team", `keys-${plane}`), data: { "jwks.json": jwks } };
    const issuers = [{ issuer: "tests", jwks: { configMapRef: { name: `keys-${plane}` } } }];
    const policy = trafficPolicy(plane, {
      overrides: { jwt: { issuers, claimHeaders: [{ claim: "sub", header: "X-User" }] } },
    });
    const token = await new SignJWT({ sub: "ann" })
      .setProtectedHeader({ alg: "ES256" })
      .setIssuer("tests")
      .setExpirationTime("1h")
      .sign(privateKey);
    const bearer = ["-H", `Authorization: Bearer ${token}`];
    await cluster.apply(policy);
    await says(policy, { ResolvedRefs: "False/InvalidKeySetRef" });
    await answers(plane, 500, ...bearer);
    await cluster.apply(keys);
    await says(policy, APPLIED);
    const { text } = await answers(plane, 200, ...bearer, "-H", "X-User: root");
    expect(text).toContain('"ann"');
    expect(text).not.toContain('"root"');
    expect((await curl(plane)).code).toBe(401);
    expect((await curl(plane, "-H", `Authorization: Bearer ${token.slice(0, -4)}AAAA`)).code).toBe(401);
    await cluster.remove(policy, keys);
    await answers(plane, 200);
  });

  test("a service of another namespace is asked once a ReferenceGrant permits it", async () => {
    const grant = {
      ...named(GATEWAY_API, "ReferenceGrant", "identity", "team"),
      spec: {
        from: [{ group: "mergeway.dev", kind: "TrafficPolicy", namespace: "team" }],
        to: [{ group: "", kind: "Service", name: "login" }],
      },
    };
    const policy = trafficPolicy(plane, {
      overrides: {
        externalAuth: {
          backendRef: { name: "login", namespace: "identity", port: 4180 },
          responseHeaders: ["X-User"],
        },
      },
    });
    await cluster.apply(policy);
    await says(policy, { ResolvedRefs: "False/RefNotPermitted" });
    await answers(plane, 500, "-H", "Authorization: Bearer good");
    await cluster.apply(grant);
    await says(policy, APPLIED);
    const { text } = await answers(plane, 200, "-H", "Authorization: Bearer good", "-H", "X-User: root");
    expect(text).toContain('"ann"');
    expect(text).not.toContain('"root"');
    const refused = await curl(plane);
    expect(refused.code).toBe(302);
    expect(refused.text).toMatch(/^location: https:\/\/login\.example\/\?rd=\/a\?b=c\r$/im);
    await cluster.remove(grant);
    await answers(plane, 500, "-H", "Authorization: Bearer good");
    await cluster.remove(policy);
    await answers(plane, 200);
  });
});

test("the API server refuses settings that make no sense, with words that say why", async () => {
  const wrong: readonly (readonly [object, RegExp])[] = [
    [{ defaults: { apiKeys: { secretRef: { name: "a" } } } }, /set headers, queryParameters or both/],
    [{ defaults: { basicAuth: {} } }, /secretRef/],
    [
      { defaults: { jwt: { issuers: [{ issuer: "a", jwks: {} }] } } },
      /set one of inline, configMapRef and url/,
    ],
    [{ defaults: { externalAuth: { backendRef: { name: "a" } } } }, /port/],
    [
      { defaults: { externalAuth: { backendRef: { name: "a", port: 1 }, pathType: "Exact" } } },
      /an exact path is not empty/,
    ],
  ];
  for (const [settings, words] of wrong) {
    const manifest = JSON.stringify(trafficPolicy("envoy", settings));
    const { code, err } = await cluster.bed.kubectl(["apply", "-f", "-"], manifest);
    expect(code).not.toBe(0);
    expect(err).toMatch(words);
  }
});
