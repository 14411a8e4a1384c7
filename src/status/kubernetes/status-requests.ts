/** The two requests of the status writer. */
import type { Key } from "../../api/key.ts";
import { type KubernetesClient, MERGE_PATCH } from "../../kubernetes/client.ts";
import { type LiveObject, pathOf } from "./live-object.ts";
import type { DesiredStatus } from "./status-entry.ts";

export const FIELD_MANAGER = "mergeway";

/** What the status writer needs of a client of the API server. */
export type StatusClient = Pick<KubernetesClient, "request">;

export async function readObject(
  client: StatusClient,
  key: Key,
  live: LiveObject,
  signal: AbortSignal,
): Promise<LiveObject> {
  const fresh = await client.request<LiveObject>({ path: pathOf(key, live), signal });
  return { ...fresh, apiVersion: live.apiVersion };
}

/** Fails with a conflict when the object has changed since `over` was read. */
export async function patchStatus(
  client: StatusClient,
  key: Key,
  { over, fields }: Pick<DesiredStatus, "over" | "fields">,
  signal: AbortSignal,
): Promise<LiveObject> {
  const after = await client.request<LiveObject>({
    method: "PATCH",
    path: pathOf(key, over, "status"),
    query: { fieldManager: FIELD_MANAGER },
    contentType: MERGE_PATCH,
    body: { metadata: { resourceVersion: over.metadata.resourceVersion }, status: fields },
    signal,
  });
  return { ...after, apiVersion: over.apiVersion };
}
