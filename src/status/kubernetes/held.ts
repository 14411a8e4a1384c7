import { isDeepStrictEqual } from "node:util";
import { type Key, partsOf } from "../../api/key.ts";
import type { Kind, Resource } from "../../api/resource.ts";
import { type ApiMetadata, objectPath } from "../../kubernetes/api-object.ts";
import { PLURAL_OF_KIND } from "../../kubernetes/kinds.ts";
import type { Status } from "./merge-status.ts";

/** What is known of an object in the cluster: from the watch, from an answer to a write, or from a fresh read. */
export interface Held {
  readonly apiVersion: string;
  readonly metadata: ApiMetadata;
  readonly status?: Status | undefined;
}

export function heldOf(resource: Resource): Held {
  const status = "status" in resource ? (resource.status as Status | undefined) : undefined;
  return { apiVersion: resource.apiVersion, metadata: resource.metadata, status };
}

/** Watches and writes are not in step: what comes later may be older. */
export function isNewer(candidate: Held, current: Held): boolean {
  if (candidate.metadata.uid !== current.metadata.uid) return true;
  const a = candidate.metadata.resourceVersion ?? "";
  const b = current.metadata.resourceVersion ?? "";
  return a.length === b.length ? a >= b : a.length > b.length;
}

export function pathOf(key: Key, { apiVersion }: Held, subresource?: "status"): string {
  const { kind, namespace, name } = partsOf(key);
  return objectPath({ apiVersion, plural: PLURAL_OF_KIND[kind], namespace }, name, subresource);
}

/**
 * What the server made of a field that we wrote: an older CRD drops what it does not know. Without this memory the difference
 * would be written again and again.
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

  /** Without the fields that the server has already made into what is there now. */
  without(wish: Status, current: Status | undefined): Status {
    if (this.#fields === undefined) return wish;
    return Object.fromEntries(
      Object.entries(wish).filter(([field, value]) => {
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
};

export function entriesField(kind: Kind): string | undefined {
  return ENTRIES[kind];
}

const WITH_CONDITIONS: readonly Kind[] = ["GatewayClass", "Gateway", "ListenerSet", "XListenerSet"];

export function hasStatusOfOurs(kind: Kind): boolean {
  return ENTRIES[kind] !== undefined || WITH_CONDITIONS.includes(kind);
}

/** Records of who wrote what are looked at when they arrive and not kept. */
export function withoutRecords({ apiVersion, metadata, status }: Held): Held {
  const { managedFields: _, annotations: __, labels: ___, ...rest } = metadata;
  return { apiVersion, metadata: rest, status };
}
