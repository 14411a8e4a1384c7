#!/usr/bin/env node
/**
 * What admission lets in the engine serves, and the other way round: random objects are sent to the
 * API server as a dry run, under random TenantPolicies, and given to an engine with the same ones.
 * Runs inside a cluster's network; tenant-admission.e2e.ts brings it there.
 */
import { parseArgs } from "node:util";
import { keyOf } from "../../../src/api/key.ts";
import type { Resource } from "../../../src/api/resource.ts";
import { Engine } from "../../../src/engine/engine.ts";
import { readText } from "../../../src/sources/files/yaml/read-text.ts";
import { TEST_SETTINGS } from "../../engine/settings.ts";
import { Random } from "../admission/random.ts";
import { ApiServer } from "../support/api-server.ts";
import { gatewayName, openGateway, PLATFORM, TEAMS, tenantPolicy, wantingObject } from "./random-tenancy.ts";

const PARALLEL = 10;
const POLICIES = 24;
const POLICY_PATH = `/apis/mergeway.dev/v1alpha1/namespaces/${PLATFORM}/tenantpolicies`;

export interface TenantComparison {
  /** By kind and version: how many both allowed, and how many both refused. */
  readonly kinds: Readonly<Record<string, readonly [number, number]>>;
  /** Routes that the API server lets in and the engine refuses, as it must be. */
  readonly leftToTheEngine: number;
  readonly reasons: Readonly<Record<string, number>>;
  readonly differences: readonly string[];
}

const { values } = parseArgs({
  options: { objects: { type: "string", default: "2000" }, seed: { type: "string", default: "1713" } },
});
const random = new Random(Number(values.seed));
const api = await ApiServer.connect(PARALLEL);

function read(object: object): Resource {
  const { documents, errors } = readText(JSON.stringify(object), "object.json", { channel: "experimental" });
  const [document] = documents;
  if (document === undefined || errors.length > 0)
    throw new Error(`${JSON.stringify(object)}: ${errors.map(({ message }) => message).join("; ")}`);
  return document.resource;
}

async function mustSend(method: "POST" | "PUT", path: string, object: object): Promise<void> {
  const { status, body } = await api.send(method, path, object);
  if (status >= 300 && status !== 409) throw new Error(`${path}: ${status} ${body}`);
}

/** Undefined: it is not against the policy. */
function enginesReason(wanted: Resource, world: readonly Resource[]): string | undefined {
  const engine = new Engine(TEST_SETTINGS);
  engine.apply([...world, wanted].map((resource) => ({ key: keyOf(resource), resource })));
  for (const { owner, violation, refused } of engine.listeners())
    if (owner.key === keyOf(wanted) && violation !== undefined && refused === violation)
      return violation.reason;
  for (const { route, parents } of engine.routeAttachments())
    for (const { violation, refused } of parents)
      if (route === keyOf(wanted) && violation !== undefined && refused !== undefined) return refused.reason;
  return undefined;
}

async function serversReason(path: string, object: object): Promise<string | undefined> {
  const { status, body } = await api.send("POST", `${path}?dryRun=All`, object);
  if (status === 201) return undefined;
  const reason = /denied request: (\w+NotAllowed): /.exec(body)?.[1];
  if (status !== 422 || reason === undefined)
    throw new Error(`${status} ${body} to ${JSON.stringify(object)}`);
  return reason;
}

async function installPolicies(): Promise<readonly (readonly Resource[])[]> {
  const namespaces = Object.entries(TEAMS).map(([name, labels]) => ({
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name, labels: { ...labels, "kubernetes.io/metadata.name": name } },
  }));
  for (const namespace of namespaces) await mustSend("POST", "/api/v1/namespaces", namespace);
  const worlds: (readonly Resource[])[] = [];
  for (let index = 0; index < POLICIES; index++) {
    const policy = tenantPolicy(random, index);
    await mustSend("POST", POLICY_PATH, policy);
    worlds.push([...namespaces, openGateway(index), policy].map(read));
  }
  return worlds;
}

/** A policy of its own that denies everything says when all older ones are known, too. */
async function settled(): Promise<void> {
  const last = {
    ...tenantPolicy(new Random(1), POLICIES),
    spec: { targetRefs: [{ kind: "Gateway", name: "probe" }] },
  };
  await mustSend("POST", POLICY_PATH, last);
  const probe = {
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "HTTPRoute",
    metadata: { name: "probe", namespace: "team-ant" },
    spec: { parentRefs: [{ name: "probe", namespace: PLATFORM }] },
  };
  const path = "/apis/gateway.networking.k8s.io/v1/namespaces/team-ant/httproutes";
  for (let tries = 0; tries < 300; tries++) {
    if ((await serversReason(path, probe)) !== undefined) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error("the admission policy does not come into force");
}

const worlds = await installPolicies();
await settled();
const queue = Array.from({ length: Number(values.objects) }, (_, index) =>
  wantingObject(random, POLICIES, index),
);
const kinds: Record<string, [number, number]> = {};
const reasons: Record<string, number> = {};
const differences: string[] = [];
let leftToTheEngine = 0;

async function work(): Promise<void> {
  for (let wanted = queue.pop(); wanted !== undefined; wanted = queue.pop()) {
    const { path, object, isDecidable } = wanted;
    const text = JSON.stringify(object);
    const world = worlds.find(
      (_, index) => text.includes(`"${gatewayName(index)}"`) || text.includes(`/${gatewayName(index)}"`),
    );
    const here = enginesReason(read(object), world ?? []);
    const there = await serversReason(path, object);
    const { kind, apiVersion } = object as { kind: string; apiVersion: string };
    const tally = kinds[`${apiVersion} ${kind}`] ?? [0, 0];
    kinds[`${apiVersion} ${kind}`] = tally;
    if ((here === undefined) === (there === undefined)) {
      tally[here === undefined ? 0 : 1]++;
      reasons[there ?? "allowed"] = (reasons[there ?? "allowed"] ?? 0) + 1;
    } else if (there === undefined && !isDecidable) leftToTheEngine++;
    else
      differences.push(
        `engine ${here ?? "allows"}, API server ${there ?? "allows"}: ${text}; ${JSON.stringify(world?.at(-1))}`,
      );
  }
}

await Promise.all(Array.from({ length: PARALLEL }, work));
const result: TenantComparison = { kinds, reasons, leftToTheEngine, differences: differences.slice(0, 20) };
process.stdout.write(`${JSON.stringify(result)}\n`);
api.close();
