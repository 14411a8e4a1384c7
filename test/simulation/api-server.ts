/**
 * As much of an API server as a controller needs: objects with versions and generations, lists,
 * watches that go on from a version or are told that it is forgotten, status as a subresource, and
 * conflicts. It keeps what it has acknowledged, and tells every watch of every change in order.
 */
import { isDeepStrictEqual } from "node:util";
import type { Condition } from "../../src/api/metadata.ts";
import { ApiError } from "../../src/kubernetes/api-error.ts";
import type { ApiMetadata, ApiObject } from "../../src/kubernetes/api-object.ts";
import type { ApiRequest, WatchEvent } from "../../src/kubernetes/client.ts";
import { listOf } from "../../src/status/kubernetes/merge-status.ts";
import type { World } from "./world.ts";

export interface Place {
  /** `group/version/plural`. */
  readonly collection: string;
  readonly namespace: string;
  readonly name: string;
  readonly subresource: string;
}

interface LoggedEvent {
  readonly version: number;
  readonly collection: string;
  readonly event: WatchEvent;
}

interface Subscription {
  readonly collection: string;
  readonly namespace: string;
  readonly deliver: (event: WatchEvent) => void;
}

/** A write of a status, as the server saw it. */
export interface StatusWrite {
  readonly at: number;
  readonly object: string;
  readonly by: string;
  readonly isNeedless: boolean;
}

type Body = Readonly<Record<string, unknown>> & { readonly metadata?: Partial<ApiMetadata> };

export class ApiServer {
  readonly #world: World;
  readonly #collections: Map<string, Map<string, ApiObject>> = new Map();
  readonly #subscriptions: Set<Subscription> = new Set();
  #log: LoggedEvent[] = [];
  /** Versions up to this one are forgotten. */
  #forgotten = 0;
  #version = 1;
  #uids = 0;
  readonly statusWrites: StatusWrite[] = [];

  constructor(world: World) {
    this.#world = world;
  }

  objects(collection: string): readonly ApiObject[] {
    return [...(this.#collections.get(collection)?.values() ?? [])];
  }

  get(collection: string, namespace: string, name: string): ApiObject | undefined {
    return this.#collections.get(collection)?.get(`${namespace}/${name}`);
  }

  /** What a person or another controller does: makes the object so, whatever it was. */
  put(collection: string, object: ApiObject): void {
    const { namespace = "", name } = object.metadata;
    const before = this.get(collection, namespace, name);
    this.#store({ collection, namespace, name, subresource: "" }, { ...before, ...object }, before);
  }

  remove(collection: string, namespace: string, name: string): void {
    const before = this.get(collection, namespace, name);
    if (before === undefined) return;
    this.#collections.get(collection)?.delete(`${namespace}/${name}`);
    const version = ++this.#version;
    const metadata = { ...before.metadata, resourceVersion: String(version) };
    this.#announce(version, collection, { type: "DELETED", object: { ...before, metadata } });
  }

  /** Versions of before cannot be watched from any more. */
  forgetVersions(): void {
    this.#forgotten = this.#version;
    this.#log = [];
  }

  handle(request: ApiRequest, by: string): unknown {
    const method = request.method ?? "GET";
    if (request.path === "/apis") return { groups: GROUPS };
    const served = SERVED[request.path];
    if (served !== undefined) return { resources: served };
    const place = placeOf(request.path);
    const body = request.body as Body | undefined;
    switch (method) {
      case "GET":
        return place.name === "" ? this.#list(place, request) : this.#read(place);
      case "POST":
        return this.#create(place, body ?? {});
      case "PUT":
        return this.#replace(place, body ?? {});
      case "PATCH":
        return place.subresource === "status"
          ? this.#patchStatus(place, body ?? {}, by)
          : this.#apply(place, body ?? {});
      case "DELETE":
        this.#read(place);
        this.remove(place.collection, place.namespace, place.name);
        return {};
      default:
        throw refusal(405, "MethodNotAllowed");
    }
  }

  /**
   * Events from this version on, those that were before at once; undefined when it is forgotten.
   */
  watch(
    path: string,
    version: number,
    deliver: (event: WatchEvent) => void,
  ): { readonly end: () => void } | undefined {
    const { collection, namespace } = placeOf(path);
    if (version < this.#forgotten) return undefined;
    const subscription = { collection, namespace, deliver };
    for (const logged of this.#log)
      if (logged.version > version && concerns(subscription, logged)) deliver(logged.event);
    this.#subscriptions.add(subscription);
    return { end: () => this.#subscriptions.delete(subscription) };
  }

  /** Where a watch begins that names no version. */
  get version(): number {
    return this.#version;
  }

  get bookmark(): WatchEvent {
    return { type: "BOOKMARK", object: { metadata: { resourceVersion: String(this.#version) } } };
  }

  #list({ collection, namespace }: Place, { query = {} }: ApiRequest): unknown {
    const [, name] = /^metadata\.name=(.*)$/.exec(String(query["fieldSelector"] ?? "")) ?? [];
    const [, label, value] = /^(.+?)=(.*)$/.exec(String(query["labelSelector"] ?? "")) ?? [];
    const items = this.objects(collection).filter(
      ({ metadata }) =>
        (namespace === "" || metadata.namespace === namespace) &&
        (name === undefined || metadata.name === name) &&
        (label === undefined || metadata.labels?.[label] === value),
    );
    return { metadata: { resourceVersion: String(this.#version) }, items };
  }

  #read({ collection, namespace, name }: Place): ApiObject {
    const found = this.get(collection, namespace, name);
    if (found === undefined) throw refusal(404, "NotFound");
    return found;
  }

  #create(place: Place, body: Body): unknown {
    const name = String(body.metadata?.name);
    if (place.collection.endsWith("/events")) return body;
    if (this.get(place.collection, place.namespace, name) !== undefined) throw refusal(409, "AlreadyExists");
    return this.#store({ ...place, name }, body, undefined);
  }

  #replace(place: Place, body: Body): ApiObject {
    const before = this.#read(place);
    if (body.metadata?.resourceVersion !== before.metadata.resourceVersion) throw refusal(409, "Conflict");
    return this.#store(place, body, before);
  }

  #patchStatus(place: Place, body: Body, by: string): ApiObject {
    const before = this.#read(place);
    if (body.metadata?.resourceVersion !== before.metadata.resourceVersion) throw refusal(409, "Conflict");
    const status: Record<string, unknown> = { ...(before["status"] as object) };
    for (const [field, value] of Object.entries((body["status"] ?? {}) as object)) {
      if (value === null) delete status[field];
      else status[field] = value;
    }
    const isNeedless = isDeepStrictEqual(status, before["status"] ?? {});
    const object = `${place.collection.split("/").at(-1)} ${place.namespace}/${place.name}`;
    this.statusWrites.push({ at: this.#world.now, object, by, isNeedless });
    this.#world.tell(by, `writes the status of ${object}${programmedIn(status)}`);
    return this.#store(place, { ...before, status }, before);
  }

  /** Server-side apply, of one manager. */
  #apply(place: Place, body: Body): ApiObject {
    const before = this.get(place.collection, place.namespace, place.name);
    if (body.metadata?.uid !== undefined && body.metadata.uid !== before?.metadata.uid)
      throw refusal(409, "Conflict");
    const metadata = { ...before?.metadata, ...body.metadata };
    const spec = { ...(before?.["spec"] as object | undefined), ...(body["spec"] as object | undefined) };
    return this.#store(place, { ...before, ...body, metadata, spec }, before);
  }

  #store(place: Place, object: Body, before: ApiObject | undefined): ApiObject {
    const { collection, namespace, name } = place;
    const generation =
      (before?.metadata.generation ?? 0) + (isDeepStrictEqual(before?.["spec"], object["spec"]) ? 0 : 1);
    const next = {
      ...object,
      metadata: {
        ...object.metadata,
        name,
        ...(namespace === "" ? {} : { namespace }),
        uid: before?.metadata.uid ?? `uid-${++this.#uids}`,
        creationTimestamp: before?.metadata["creationTimestamp" as never] ?? new Date().toISOString(),
        generation: Math.max(1, generation),
        resourceVersion: before?.metadata.resourceVersion ?? "",
      },
    };
    // As a real one: what changes nothing gets no new version.
    if (before !== undefined && isDeepStrictEqual(before, next)) return before;
    const version = ++this.#version;
    next.metadata.resourceVersion = String(version);
    const stored = frozen(next) as ApiObject;
    const objects = this.#collections.get(collection) ?? new Map<string, ApiObject>();
    this.#collections.set(collection, objects.set(`${namespace}/${name}`, stored));
    this.#announce(version, collection, {
      type: before === undefined ? "ADDED" : "MODIFIED",
      object: stored,
    });
    return stored;
  }

  #announce(version: number, collection: string, event: WatchEvent): void {
    const logged = { version, collection, event };
    this.#log.push(logged);
    for (const subscription of [...this.#subscriptions])
      if (concerns(subscription, logged)) subscription.deliver(event);
  }
}

function programmedIn({ conditions }: Readonly<Record<string, unknown>>): string {
  const found = listOf<Condition>(conditions).find(({ type }) => type === "Programmed");
  return found === undefined ? "" : `: Programmed=${found.status}, ${found.reason}`;
}

function concerns(
  { collection, namespace }: Subscription,
  { collection: changed, event }: LoggedEvent,
): boolean {
  return (
    collection === changed &&
    (namespace === "" || (event.object as ApiObject).metadata.namespace === namespace)
  );
}

/** A copy that nobody can change: every reader has the same one. */
function frozen(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Object.isFrozen(value)) return value;
  if (Array.isArray(value)) return Object.freeze(value.map(frozen));
  return Object.freeze(Object.fromEntries(Object.entries(value).map(([key, each]) => [key, frozen(each)])));
}

export function placeOf(path: string): Place {
  const parts = path.split("/").filter((part) => part !== "");
  const base = parts[0] === "api" ? parts.slice(1, 2) : parts.slice(1, 3);
  const rest = parts.slice(base.length + 1);
  const isNamespaced = rest[0] === "namespaces" && rest.length >= 3;
  const [plural = "", name = "", subresource = ""] = isNamespaced ? rest.slice(2) : rest;
  const collection = [...base, plural].join("/");
  return { collection, namespace: isNamespaced ? (rest[1] ?? "") : "", name, subresource };
}

export function refusal(status: number, reason: string): ApiError {
  return ApiError.fromAnswer("simulated", status, JSON.stringify({ reason, message: reason }));
}

const GROUPS = [
  { name: "gateway.networking.k8s.io", versions: [{ version: "v1" }] },
  { name: "mergeway.dev", versions: [{ version: "v1alpha1" }] },
];
const KINDS = {
  gatewayclasses: "GatewayClass",
  gateways: "Gateway",
  listenersets: "ListenerSet",
  httproutes: "HTTPRoute",
};
const SERVED: Readonly<Record<string, readonly { readonly name: string; readonly kind: string }[]>> = {
  "/apis/gateway.networking.k8s.io/v1": Object.entries(KINDS).map(([name, kind]) => ({ name, kind })),
  "/apis/mergeway.dev/v1alpha1": [{ name: "trafficpolicies", kind: "TrafficPolicy" }],
};
