/**
 * What must be true when all is quiet: computed afresh from what the API server has and from what
 * the data planes serve, by nothing that has lived through the history.
 */

import type { Service } from "../../src/api/core.ts";
import type { Gateway } from "../../src/api/gateway.ts";
import { keyFor, partsOf } from "../../src/api/key.ts";
import type { Condition } from "../../src/api/metadata.ts";
import type { Kind, Resource } from "../../src/api/resource.ts";
import { engineSettings } from "../../src/controller/build-parts.ts";
import { encodeItem } from "../../src/dataplanes/remote/protocol/protocol.ts";
import { Engine } from "../../src/engine/engine.ts";
import type { ObjectVerdict } from "../../src/engine/verdicts/verdicts.ts";
import { addressFact } from "../../src/infra/addresses.ts";
import type { ApiObject } from "../../src/kubernetes/api-object.ts";
import type { ItemReport } from "../../src/plan/item-report.ts";
import { shaperOf } from "../../src/sources/kubernetes/shape.ts";
import { changedFields, listOf, type Status } from "../../src/status/kubernetes/merge-status.ts";
import { renderStatus } from "../../src/status/render.ts";
import {
  CLASSES,
  type Cluster,
  GATEWAY,
  GATEWAYS,
  NAMESPACES,
  ROUTES,
  SECRETS,
  SERVICE,
  SERVICES,
  SETS,
  SLICES,
  TRAFFIC_POLICIES,
} from "./cluster.ts";
import { CONTROLLER_NAME, referenceOf, simulatedOptions } from "./simulated-options.ts";

const KIND_OF: Readonly<Record<string, Kind>> = {
  [CLASSES]: "GatewayClass",
  [GATEWAYS]: "Gateway",
  [SETS]: "ListenerSet",
  [ROUTES]: "HTTPRoute",
  [TRAFFIC_POLICIES]: "TrafficPolicy",
  [NAMESPACES]: "Namespace",
  [SECRETS]: "Secret",
  [SERVICES]: "Service",
  [SLICES]: "EndpointSlice",
};
const SHAPERS = new Map(
  Object.entries(KIND_OF).map(([collection, kind]) => {
    const apiVersion = collection.slice(0, collection.lastIndexOf("/"));
    return [collection, shaperOf(kind, apiVersion)] as const;
  }),
);
const COLLECTION_OF = new Map(Object.entries(KIND_OF).map(([collection, kind]) => [kind, collection]));

/** What is not as it should be, in plain words; nothing when all is true. */
export function untruths(cluster: Cluster): readonly string[] {
  const engine = new Engine(engineSettings(simulatedOptions("truth"), { referenceOf }));
  const resources = new Map<string, Resource>();
  for (const [collection, shape] of SHAPERS) {
    for (const object of cluster.server.objects(collection)) {
      const shaped = shape(object);
      if (!("resource" in shaped)) throw new Error(`${object.metadata.name}: ${shaped.problem}`);
      const { namespace = "", name } = object.metadata;
      resources.set(keyFor(KIND_OF[collection] as Kind, namespace, name), shaped.resource);
    }
  }
  engine.apply([...resources].map(([key, resource]) => ({ key, resource })));
  const plan = new Map([...engine.plan()].map((item) => [item.id, encodeItem(item)]));
  const behind = cluster.alivePods.flatMap((pod) => differences(pod.name, plan, pod.plane.serves));
  engine.learn({ reports: reportsOf(cluster, plan), infrastructure: infrastructureOf(cluster, resources) });
  const verdicts = new Map(engine.verdicts());
  const lies = [...verdicts].flatMap(([key, verdict]) => lieOf(cluster, key, verdict));
  const stale = [...resources]
    .filter(([key]) => !verdicts.has(key))
    .flatMap(([key, it]) => leftBehind(key, it));
  const { namespace } = GATEWAY;
  const hasService = resources.has(keyFor("Service", namespace, SERVICE));
  return [...(hasService ? [] : ["the Gateway has no Service"]), ...behind, ...lies, ...stale];
}

function differences(
  pod: string,
  plan: ReadonlyMap<string, string>,
  serves: ReadonlyMap<string, string>,
): readonly string[] {
  const missing = [...plan]
    .filter(([id, text]) => serves.get(id) !== text)
    .map(([id]) => `${pod} does not serve the newest ${id}`);
  const left = [...serves.keys()].filter((id) => !plan.has(id)).map((id) => `${pod} still serves ${id}`);
  return [...missing, ...left];
}

function reportsOf(cluster: Cluster, plan: ReadonlyMap<string, string>): readonly ItemReport[] {
  return [...plan].flatMap(([id, text]) => {
    const said = cluster.alivePods.flatMap(({ plane }) =>
      plane.serves.get(id) === text ? (plane.reportOf(id) ?? []) : [],
    );
    const report = said.find(({ state }) => state === "rejected") ?? said[0];
    return report === undefined ? [] : [report];
  });
}

function infrastructureOf(
  cluster: Cluster,
  resources: ReadonlyMap<string, Resource>,
): ReadonlyMap<string, ReturnType<typeof addressFact>> {
  const isReady = cluster.alivePods.some((pod) => pod.isReady);
  const gateways = [...resources].filter(([key]) => key.startsWith("Gateway/"));
  return new Map(
    gateways.map(([key, gateway]) => {
      const { namespace } = partsOf(key);
      const find = (name: string): Service | undefined =>
        resources.get(keyFor("Service", namespace, name)) as Service | undefined;
      return [key, addressFact(gateway as Gateway, find, () => isReady)];
    }),
  );
}

function lieOf(cluster: Cluster, key: string, verdict: ObjectVerdict): readonly string[] {
  const { kind, namespace, name } = partsOf(key);
  const object: ApiObject | undefined = cluster.server.get(COLLECTION_OF.get(kind) ?? "", namespace, name);
  const status = object?.["status"] as Status | undefined;
  // What a class says depends on the installation too: it is enough that it says something.
  if (verdict.type === "class") return status === undefined ? [`${key} has no status`] : [];
  const options = { controllerName: CONTROLLER_NAME, now: "1970-01-01T00:00:00Z" };
  const rendered = renderStatus({ kind, status } as unknown as Resource, verdict, options);
  return Object.entries(changedFields(status, rendered, CONTROLLER_NAME)).flatMap(([field, value]) => {
    const said = statements(field, status?.[field]);
    const truth = statements(field, value);
    const wrong = [...said].filter((each) => !truth.has(each)).join("; ") || "nothing of it";
    const right = [...truth].filter((each) => !said.has(each)).join("; ") || "nothing of it";
    return [`${key} says ${wrong}, and the truth is ${right}`];
  });
}

/** Entries of ours in the status of a route or policy that nothing of ours is above any more. */
function leftBehind(key: string, resource: Resource): readonly string[] {
  const status = "status" in resource ? (resource.status as Status | undefined) : undefined;
  return ["parents", "ancestors"]
    .flatMap((field) => listOf<{ readonly controllerName?: string }>(status?.[field]))
    .filter(({ controllerName }) => controllerName === CONTROLLER_NAME)
    .map(() => `${key} still has an entry of a parent or ancestor that is gone`);
}

interface Said {
  readonly name?: string;
  readonly parentRef?: { readonly name: string };
  readonly conditions?: readonly Condition[];
}

/** A field of a status as single statements, so that one sees which of them differ. */
function statements(field: string, value: unknown): ReadonlySet<string> {
  if (field === "conditions") return new Set(conditionsIn("", listOf(value)));
  if (!Array.isArray(value) || field === "addresses") return new Set([`${field}: ${JSON.stringify(value)}`]);
  return new Set(
    listOf<Said>(value).flatMap(({ name, parentRef, conditions = [], ...rest }) => {
      const whose = `${name ?? parentRef?.name}: `;
      return [...conditionsIn(whose, conditions), `${whose}${JSON.stringify(rest)}`];
    }),
  );
}

function conditionsIn(whose: string, conditions: readonly Condition[]): readonly string[] {
  return conditions.map(
    ({ type, status, reason, message, observedGeneration }) =>
      `${whose}${type}=${status} of generation ${observedGeneration} (${reason}: ${message})`,
  );
}
