import { isDeepStrictEqual } from "node:util";
import { type Key, partsOf } from "../../api/key.ts";
import type { Kind, Resource } from "../../api/resource.ts";
import { type ApiMetadata, objectPath } from "../../kubernetes/api-object.ts";
import { PLURAL_OF_KIND } from "../../kubernetes/kinds.ts";
import type { Status } from "./merge-status.ts";

/**
 * An object as the API server last returned it: from the watch, from the response to a write, or
 * from a read.
 */
export interface LiveObject {
  readonly apiVersion: string;
  readonly metadata: ApiMetadata;
  readonly status?: Status | undefined;
}

export function liveObjectOf(resource: Resource): LiveObject {
  const status = "status" in resource ? (resource.status as Status | undefined) : undefined;
  return { apiVersion: resource.apiVersion, metadata: resource.metadata, status };
}

/**
 * Whether an object of the watch is newer than the live object. Watch events and responses to
 * writes are not ordered: one that comes later may be older.
 */
export function isNewer(candidate: LiveObject, current: LiveObject): boolean {
  return candidate.metadata.uid !== current.metadata.uid || !isOlder(candidate, current);
}

/**
 * The live object after a response to a request that was sent when `known` was the live object. The
 * watch may have brought a newer version or a deletion meanwhile: a response never undoes those.
 */
export function afterAnswer(
  current: LiveObject | undefined,
  known: LiveObject,
  answer: LiveObject,
): LiveObject | undefined {
  if (current === known) return answer;
  return current === undefined || isOlder(answer, current) ? current : answer;
}

function isOlder(candidate: LiveObject, current: LiveObject): boolean {
  const a = candidate.metadata.resourceVersion ?? "";
  const b = current.metadata.resourceVersion ?? "";
  return a.length === b.length ? a < b : a.length < b.length;
}

export function pathOf(key: Key, { apiVersion }: LiveObject, subresource?: "status"): string {
  const { kind, namespace, name } = partsOf(key);
  return objectPath({ apiVersion, plural: PLURAL_OF_KIND[kind], namespace }, name, subresource);
}

/**
 * Remembers what the server stored for a field that we wrote: an older CRD drops unknown fields.
 * Otherwise the difference would be written again and again.
 */
export class Normalised {
  /** Made when first needed: there is one of these for every route. */
  #fields: Map<string, { readonly written: unknown; readonly stored: unknown }> | undefined;

  learn(written: Status, stored: Status | undefined): void {
    for (const [field, value] of Object.entries(written)) {
      if (isDeepStrictEqual(stored?.[field] ?? null, value)) this.#fields?.delete(field);
      else {
        this.#fields ??= new Map();
        this.#fields.set(field, { written: value, stored: stored?.[field] });
      }
    }
  }

  /** Forgets everything: another CRD may have the field. Returns whether there was anything. */
  forget(): boolean {
    const had = this.#fields !== undefined;
    this.#fields = undefined;
    return had;
  }

  /** Without the fields that the server would store as they are now. */
  without(desired: Status, current: Status | undefined): Status {
    if (this.#fields === undefined) return desired;
    return Object.fromEntries(
      Object.entries(desired).filter(([field, value]) => {
        const known = this.#fields?.get(field);
        return !(
          known !== undefined &&
          isDeepStrictEqual(known.written, value) &&
          isDeepStrictEqual(known.stored, current?.[field])
        );
      }),
    );
  }
}

/** The list in the status of a kind that has one entry a controller. */
const ENTRIES: Readonly<Partial<Record<Kind, string>>> = {
  HTTPRoute: "parents",
  GRPCRoute: "parents",
  TLSRoute: "parents",
  TCPRoute: "parents",
  UDPRoute: "parents",
  BackendTLSPolicy: "ancestors",
  TrafficPolicy: "ancestors",
  ClientPolicy: "ancestors",
  BackendPolicy: "ancestors",
  TenantPolicy: "ancestors",
};

export function entriesField(kind: Kind): string | undefined {
  return ENTRIES[kind];
}

const WITH_CONDITIONS: readonly Kind[] = ["GatewayClass", "Gateway", "ListenerSet", "XListenerSet"];

export function hasStatusOfOurs(kind: Kind): boolean {
  return ENTRIES[kind] !== undefined || WITH_CONDITIONS.includes(kind);
}

/** Without managedFields and other large metadata, which are read on arrival and not kept. */
export function withoutRecords({ apiVersion, metadata, status }: LiveObject): LiveObject {
  const { managedFields: _, annotations: __, labels: ___, ...rest } = metadata;
  return { apiVersion, metadata: rest, status };
}
