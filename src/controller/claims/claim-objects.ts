/** HostnameClaims as objects of the cluster: what they are called, and whose they are. */
import type { HostnameClaims, HostnameClaimsSpec } from "../../api/hostname-claims.ts";
import { type Key, partsOf } from "../../api/key.ts";
import { MERGEWAY_GROUP } from "../../api/resource.ts";
import { digest } from "../../digest/digest.ts";
import { type ApiObject, collectionPath, objectPath } from "../../kubernetes/api-object.ts";

const API_VERSION = `${MERGEWAY_GROUP}/v1alpha1`;
/** Which controller has written an object; only its own are its to delete. */
const CONTROLLER_ANNOTATION = "mergeway.dev/controller";
const LONGEST_NAME = 240;

export function claimsPath(namespace: string | undefined): string {
  return collectionPath({ apiVersion: API_VERSION, plural: "hostnameclaims", namespace });
}

export function claimPath(namespace: string, name: string): string {
  return objectPath({ apiVersion: API_VERSION, plural: "hostnameclaims", namespace }, name);
}

export function shardName(gateway: Key, shard: number): string {
  const { name } = partsOf(gateway);
  const base = name.length <= LONGEST_NAME ? name : `${name.slice(0, 200)}-${digest(name, "hex", 16)}`;
  return `${base}-${shard}`;
}

/** The shard that an object of this Gateway is; undefined when it is none. */
export function shardOf(gateway: Key, name: string): number | undefined {
  const shard = Number(name.slice(name.lastIndexOf("-") + 1));
  return Number.isInteger(shard) && shard >= 0 && shardName(gateway, shard) === name ? shard : undefined;
}

export interface ClaimOwner {
  readonly gateway: Key;
  /** Of the Gateway: what belongs to it goes with it. */
  readonly uid: string | undefined;
  readonly controllerName: string;
}

export function claimsObject(
  { gateway, uid, controllerName }: ClaimOwner,
  shard: number,
  spec: HostnameClaimsSpec,
): HostnameClaims & ApiObject {
  const { namespace, name } = partsOf(gateway);
  const owner = { apiVersion: "gateway.networking.k8s.io/v1", kind: "Gateway", name, uid };
  return {
    apiVersion: API_VERSION,
    kind: "HostnameClaims",
    metadata: {
      name: shardName(gateway, shard),
      namespace,
      labels: { "app.kubernetes.io/managed-by": "mergeway" },
      annotations: { [CONTROLLER_ANNOTATION]: controllerName },
      ...(uid === undefined ? {} : { ownerReferences: [owner] }),
    },
    spec,
  };
}

export function isWrittenBy({ metadata }: ApiObject, controllerName: string): boolean {
  return metadata.annotations?.[CONTROLLER_ANNOTATION] === controllerName;
}

/** What somebody else may have written; undefined when it is nothing that can be read. */
export function claimsSpecOf({ spec }: ApiObject): HostnameClaimsSpec | undefined {
  if (typeof spec !== "object" || spec === null) return undefined;
  const { gateway, names } = spec as Partial<HostnameClaimsSpec>;
  return typeof gateway === "string" && typeof names === "object" && names !== null
    ? (spec as HostnameClaimsSpec)
    : undefined;
}
