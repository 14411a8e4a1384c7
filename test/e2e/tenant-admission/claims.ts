#!/usr/bin/env node
/**
 * Claims at a real API server: random histories of sets, with the writer of HostnameClaims and the
 * engine as in a controller. What is refused is what a model of a few lines refuses, and a hostname
 * changes hands only when its holder gives it up, or the Gateway's owner gives it away.
 */
import { isDeepStrictEqual, parseArgs } from "node:util";
import { keyOf, partsOf } from "../../../src/api/key.ts";
import type { Resource } from "../../../src/api/resource.ts";
import { ClaimWriter, type ClaimWriterOptions } from "../../../src/controller/claims/claim-writer.ts";
import { Engine } from "../../../src/engine/engine.ts";
import { isServing } from "../../../src/engine/listeners/merge.ts";
import { createKubernetesClient } from "../../../src/kubernetes/client.ts";
import { coversPattern } from "../../../src/plan/hostname.ts";
import { readText } from "../../../src/sources/files/yaml/read-text.ts";
import { TEST_SETTINGS } from "../../engine/settings.ts";
import { Random } from "../admission/random.ts";
import { type Answer, ApiServer } from "../support/api-server.ts";
import { PLATFORM } from "./random-tenancy.ts";

export interface ClaimHistory {
  readonly allowed: number;
  readonly refused: number;
  readonly transfers: number;
  /** Times that a hostname got another holder. */
  readonly changes: number;
  readonly differences: readonly string[];
  /** Claims and history outlive a restart and a deletion. */
  readonly survives: boolean;
}

const { values } = parseArgs({
  options: { steps: { type: "string", default: "60" }, seed: { type: "string", default: "28" } },
});
const random = new Random(Number(values.seed));
const api = await ApiServer.connect(4);
const TEAMS = ["team-ant", "team-bee", "team-cat"];
const BELOW = ["a.claim.test", "b.claim.test", "x.a.claim.test", "c.test"];
const NAMES = [...BELOW, "*.claim.test", "*.a.claim.test"];
const GATEWAY = `Gateway/${PLATFORM}/claims`;
const engine = new Engine({ ...TEST_SETTINGS, referenceOf: (_gateway, hostname) => `ref-${hostname}` });
const options: ClaimWriterOptions = {
  client: await createKubernetesClient({}),
  controllerName: "mergeway.dev/controller",
  watchNamespaces: [],
  engine,
  uidOf: () => undefined,
  referenceOf: (_gateway, hostname) => `ref-${hostname}`,
  onFact: () => {},
  timing: { gatherMs: 20 },
};
const writer = new ClaimWriter(options);
const stop = new AbortController();
const writing = writer.run(stop.signal);

function take(resource: Resource | undefined, key = resource && keyOf(resource)): void {
  if (key !== undefined) engine.apply([{ key, resource }]);
  writer.follow();
}

function read(text: string): Resource {
  const [document] = readText(text, "object.json", { channel: "experimental" }).documents;
  if (document === undefined) throw new Error(text);
  return document.resource;
}

async function must(answer: Promise<Answer>): Promise<Resource> {
  const { status, body } = await answer;
  if (status >= 300) throw new Error(`${status} ${body}`);
  return read(body);
}

const GATEWAY_API = "/apis/gateway.networking.k8s.io/v1";
const POLICIES = `/apis/mergeway.dev/v1alpha1/namespaces/${PLATFORM}/tenantpolicies`;

function setsOf(namespace: string): string {
  return `${GATEWAY_API}/namespaces/${namespace}/listenersets`;
}

interface Wanted {
  readonly namespace: string;
  readonly name: string;
  readonly hostnames: readonly string[];
}

function setObject({ namespace, name, hostnames }: Wanted, resourceVersion?: string): object {
  return {
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "ListenerSet",
    metadata: { name, namespace, ...(resourceVersion === undefined ? {} : { resourceVersion }) },
    spec: {
      parentRef: { name: "claims", namespace: PLATFORM },
      listeners: hostnames.map((hostname, at) => ({ name: `l${at}`, port: 80, protocol: "HTTP", hostname })),
    },
  };
}

interface Transfer {
  readonly hostname: string;
  readonly to: { readonly namespace: string };
}

function policyObject(transfers: readonly Transfer[], resourceVersion?: string): object {
  return {
    apiVersion: "mergeway.dev/v1alpha1",
    kind: "TenantPolicy",
    metadata: { name: "claims", namespace: PLATFORM, ...(resourceVersion ? { resourceVersion } : {}) },
    spec: {
      targetRefs: [{ kind: "Gateway", name: "claims" }],
      unmatchedNamespaces: "Allow",
      claims: "Hold",
      transfers,
    },
  };
}

/** Namespaces that use each name: they serve it, or may by a transfer. */
function users(transfers: readonly Transfer[]): ReadonlyMap<string, ReadonlySet<string>> {
  const found = new Map<string, Set<string>>();
  const add = (hostname: string, namespace: string): void =>
    void found.set(hostname, (found.get(hostname) ?? new Set()).add(namespace));
  for (const each of engine.listeners())
    if (isServing(each) && each.owner.role !== "root") add(each.hostname, each.owner.namespace);
  for (const { hostname, to } of transfers) add(hostname, to.namespace);
  return found;
}

function isTaken(hostname: string, namespace: string, used: ReturnType<typeof users>): boolean {
  return [...used].some(([claim, namespaces]) => {
    if (namespaces.has(namespace) || !coversPattern(claim, hostname)) return false;
    if (claim === hostname) return true;
    const isOwn = ([below, by]: readonly [string, ReadonlySet<string>]): boolean =>
      below !== claim && by.has(namespace) && coversPattern(claim, below) && coversPattern(below, hostname);
    return ![...used].some(isOwn);
  });
}

function holders(): ReadonlyMap<string, string> {
  return new Map(
    [...engine.listeners()].filter(isServing).map((each) => [each.hostname, each.owner.namespace]),
  );
}

let sentinels = 0;

/** A name that is claimed last is known to the API server when all others are. */
async function settled(): Promise<void> {
  const hostname = `s${sentinels++}.sentinel.test`;
  const old = sets.get("team-elk/sentinel");
  const own = { namespace: "team-elk", name: "sentinel", hostnames: [hostname] };
  await put(own, old);
  const probe = setObject({ namespace: "team-dog", name: "probe", hostnames: [hostname] });
  for (let tries = 0; tries < 600; tries++) {
    const { status } = await api.send("POST", `${setsOf("team-dog")}?dryRun=All`, probe);
    if (status === 422) return;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error("claims do not come into force");
}

const sets = new Map<string, Resource & { spec: { listeners: readonly { hostname?: string }[] } }>();

async function put(wanted: Wanted, old: Resource | undefined): Promise<boolean> {
  const path = setsOf(wanted.namespace);
  const object = setObject(wanted, old?.metadata.resourceVersion);
  const { status, body } =
    old === undefined
      ? await api.send("POST", path, object)
      : await api.send("PUT", `${path}/${wanted.name}`, object);
  if (status === 422 && body.includes("HostnameClaimed")) {
    if (
      !/\(reference ref-/.test(body) ||
      TEAMS.some((team) => body.includes(team) && team !== wanted.namespace)
    )
      throw new Error(body);
    return false;
  }
  if (status >= 300) throw new Error(`${status} ${body}`);
  const resource = read(body) as Resource & { spec: { listeners: readonly { hostname?: string }[] } };
  sets.set(`${wanted.namespace}/${wanted.name}`, resource);
  take(resource);
  return true;
}

const gateway = {
  apiVersion: "gateway.networking.k8s.io/v1",
  kind: "Gateway",
  metadata: { name: "claims", namespace: PLATFORM },
  spec: {
    gatewayClassName: "mergeway",
    allowedListeners: { namespaces: { from: "All" } },
    listeners: [{ name: "http", port: 80, protocol: "HTTP" }],
  },
};
for (const name of [...TEAMS, "team-dog", "team-elk"])
  await api.send("POST", "/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name } });
take(await must(api.send("POST", `${GATEWAY_API}/namespaces/${PLATFORM}/gateways`, gateway)));
let policy = await must(api.send("POST", POLICIES, policyObject([])));
take(policy);
await settled();

const differences: string[] = [];
let [allowed, refused, changes, given] = [0, 0, 0, 0];
let transfers: readonly Transfer[] = [];

async function writeSet(): Promise<void> {
  const namespace = random.of(TEAMS);
  const name = random.of(["one", "two"]);
  const old = sets.get(`${namespace}/${name}`);
  const wanted = Array.from({ length: 1 + random.below(2) }, () => random.of(NAMES));
  const kept = (old?.spec.listeners ?? []).flatMap(({ hostname }) => hostname ?? []);
  const hostnames = [...new Set(random.next() < 0.5 ? [...kept, ...wanted] : wanted)];
  const used = users(transfers);
  const taken = hostnames.filter((each) => !kept.includes(each) && isTaken(each, namespace, used));
  const isLet = await put({ namespace, name, hostnames }, old);
  if (isLet) allowed++;
  else refused++;
  if (isLet !== (taken.length === 0))
    differences.push(`${namespace}/${name} asks for ${hostnames}: ${isLet}, taken ${taken}`);
}

async function remove(): Promise<void> {
  const [found] = [...sets].filter(([id]) => !id.startsWith("team-elk/")).slice(random.below(3));
  if (found === undefined) return;
  const [id, set] = found;
  await api.send("DELETE", `${setsOf(partsOf(keyOf(set)).namespace)}/${set.metadata.name}`);
  sets.delete(id);
  take(undefined, keyOf(set));
}

async function transfer(): Promise<void> {
  const to = { namespace: random.of(TEAMS) };
  transfers = transfers.length > 0 ? [] : [{ hostname: random.of(NAMES), to }];
  given += transfers.length;
  policy = await must(
    api.send("PUT", `${POLICIES}/claims`, policyObject(transfers, policy.metadata.resourceVersion)),
  );
  take(policy);
}

for (let step = 0; step < Number(values.steps); step++) {
  const before = holders();
  const wasAsked = new Map([...sets].map(([id, set]) => [id, set]));
  const act = random.next();
  await (act < 0.7 ? writeSet() : act < 0.85 ? remove() : transfer());
  for (const [hostname, holder] of holders()) {
    const former = before.get(hostname);
    if (former === undefined || former === holder || hostname.endsWith("sentinel.test")) continue;
    changes++;
    const asks = [...sets.values()].some(
      (set) =>
        set.metadata.namespace === former && set.spec.listeners.some((each) => each.hostname === hostname),
    );
    const isGiven = transfers.some((each) => each.hostname === hostname && each.to.namespace === holder);
    // A transfer that ends gives the name back to whoever comes first.
    const isGivenBack = act >= 0.85 && transfers.length === 0;
    if (asks && !isGiven && !isGivenBack)
      differences.push(`step ${step}: ${hostname} went from ${former} to ${holder}, ${wasAsked.size} sets`);
  }
  await settled();
}
stop.abort();
await writing;

/** Another leader goes on where the first one was, and writes again what somebody deletes. */
async function restarted(): Promise<boolean> {
  const path = `/apis/mergeway.dev/v1alpha1/namespaces/${PLATFORM}/hostnameclaims/claims-0`;
  const specOf = async (): Promise<unknown> => JSON.parse((await api.send("GET", path)).body).spec;
  const before = await specOf();
  const next = new Engine({ ...TEST_SETTINGS, referenceOf: (_gateway, hostname) => `ref-${hostname}` });
  const world = [read(JSON.stringify(gateway)), policy, ...sets.values()];
  next.apply(world.map((resource) => ({ key: keyOf(resource), resource })));
  const agreed = Promise.withResolvers<void>();
  const successor = new ClaimWriter({ ...options, engine: next, onFact: () => agreed.resolve() });
  successor.follow();
  const end = new AbortController();
  const running = successor.run(end.signal);
  await agreed.promise;
  await api.send("DELETE", path);
  let after: unknown;
  for (let tries = 0; tries < 400 && after === undefined; tries++) {
    await new Promise((resolve) => setTimeout(resolve, 25));
    after = await specOf();
  }
  end.abort();
  await running;
  return isDeepStrictEqual(after, before);
}

const survives = await restarted();
const result: ClaimHistory = { allowed, refused, transfers: given, changes, differences, survives };
process.stdout.write(`${JSON.stringify(result)}\n`);
await api.send("DELETE", `${GATEWAY_API}/namespaces/${PLATFORM}/gateways/${partsOf(GATEWAY).name}`);
api.close();
