#!/usr/bin/env node
/**
 * What the admission policy of TenantPolicies costs the API server: the time that it spends in
 * ValidatingAdmissionPolicies, by its own metric, for one ListenerSet under so many rules.
 */
import { ApiServer } from "../support/api-server.ts";

const REQUESTS = 20;
/** The best one counts: others use the machine, too. */
const ROUNDS = 15;
const RULES = [1, 10, 100, 1000];
const POLICY = "/apis/mergeway.dev/v1alpha1/namespaces/gateways/tenantpolicies";
const SETS = "/apis/gateway.networking.k8s.io/v1/namespaces/shop/listenersets?dryRun=All";

export interface Cost {
  readonly rules: number;
  readonly milliseconds: number;
  /** HostnameClaims of the Gateway, each with 1,000 names. */
  readonly claims?: number;
}

const api = await ApiServer.connect(1);

function policyOf(count: number): object {
  const rules = Array.from({ length: count }, (_, index) => ({
    name: `rule-${index}`,
    // The last one selects the namespace.
    namespaceSelector: {
      matchLabels: { "kubernetes.io/metadata.name": index === count - 1 ? "shop" : `team-${index}` },
    },
    hostnames: { allow: ["{namespace}.example.com", "*.{namespace}.example.com"] },
    ports: [{ port: 80 }, { port: 443 }],
  }));
  return {
    apiVersion: "mergeway.dev/v1alpha1",
    kind: "TenantPolicy",
    metadata: { name: "cost", namespace: "gateways" },
    spec: { targetRefs: [{ kind: "Gateway", name: "cost" }], rules },
  };
}

function setAt(gateway: string, hostname: string): object {
  return {
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "ListenerSet",
    metadata: { name: "cost", namespace: "shop" },
    spec: {
      parentRef: { name: gateway, namespace: "gateways" },
      listeners: [{ name: "web", port: 80, protocol: "HTTP", hostname }],
    },
  };
}

async function spent(): Promise<number> {
  const { body } = await api.send("GET", "/metrics");
  const wanted =
    /^apiserver_admission_controller_admission_duration_seconds_sum\{.*"ValidatingAdmissionPolicy".*"CREATE".*\} (\S+)$/gm;
  return [...body.matchAll(wanted)].reduce((sum, [, seconds]) => sum + Number(seconds), 0);
}

async function statusOf(object: object): Promise<number> {
  return (await api.send("POST", SETS, object)).status;
}

/** Until the policy is in force with so many rules. */
async function settled(): Promise<void> {
  for (let tries = 0; tries < 300; tries++) {
    const foreign = await statusOf(setAt("cost", "other.example.com"));
    if (foreign === 422 && (await statusOf(setAt("cost", "a.shop.example.com"))) === 201) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error("the admission policy does not come into force");
}

async function measure(rules: number): Promise<Cost> {
  await api.send("DELETE", `${POLICY}/cost`);
  const { status, body } = await api.send("POST", POLICY, policyOf(rules));
  if (status !== 201) throw new Error(body);
  await settled();
  return { rules, milliseconds: await leastTime() };
}

const CLAIMS = "/apis/mergeway.dev/v1alpha1/namespaces/gateways/hostnameclaims";

function claimsOf(shard: number): object {
  const names = Array.from({ length: 1000 }, (_, at) => [
    `n${at}.s${shard}.shop.example.com`,
    { reference: "0123456789abcdef", namespaces: ["other"] },
  ]);
  return {
    apiVersion: "mergeway.dev/v1alpha1",
    kind: "HostnameClaims",
    metadata: { name: `cost-${shard}`, namespace: "gateways" },
    spec: { gateway: "cost", enforcement: "Enforce", names: Object.fromEntries(names) },
  };
}

/** With the TenantPolicy of the last measurement. */
async function measureClaims(shards: number): Promise<Cost> {
  for (let shard = 0; shard < shards; shard++) await api.send("POST", CLAIMS, claimsOf(shard));
  const last = setAt("cost", `n999.s${shards - 1}.shop.example.com`);
  for (let tries = 0; tries < 300 && (await statusOf(last)) !== 422; tries++)
    await new Promise((resolve) => setTimeout(resolve, 100));
  if ((await statusOf(last)) !== 422) throw new Error("claims do not come into force");
  const milliseconds = await leastTime();
  for (let shard = 0; shard < shards; shard++) await api.send("DELETE", `${CLAIMS}/cost-${shard}`);
  return { rules: 1, claims: shards, milliseconds };
}

async function leastTime(): Promise<number> {
  const set = setAt("cost", "a.shop.example.com");
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round++) {
    const before = await spent();
    for (let sent = 0; sent < REQUESTS; sent++) await statusOf(set);
    least = Math.min(least, ((await spent()) - before) * (1000 / REQUESTS));
  }
  return least;
}

const costs: Cost[] = [];
for (const rules of RULES) costs.push(await measure(rules));
await measure(1);
for (const shards of [1, 12]) costs.push(await measureClaims(shards));
await api.send("DELETE", `${POLICY}/cost`);
process.stdout.write(`${JSON.stringify(costs)}\n`);
api.close();
