/**
 * The stream between a controller and the data plane pods of its Gateways: one HTTP/2 request over TLS, lines of JSON both ways.
 *
 *   pod → controller   hello        which Gateway, which pod
 *                      serve        asks for items, once, and says which it still has (by digest), so that only the difference is sent
 *                      report       the fate of items; what the pod serves, whoever it came from
 *                      acknowledge  the state that the pod serves, as the delta called it
 *   controller → pod   delta        items that appeared, changed or went away; `synced` ends the first difference; `state` names what is complete with it
 *
 * A pod speaks to every replica of the controller and takes items from one of them at a time: all replicas must know what is programmed, since any of them may be
 * the leader that writes statuses, but two of them must not both feed one pod, since one may be behind. All of them compare what a pod serves with their own plan, by digest.
 *
 * The controller is known by its certificate, the pod by its ServiceAccount's token; a pod is given the items of its own Gateway and no others.
 */
import { createHash } from "node:crypto";
import { PrivateKey } from "../../plan/certificate.ts";
import type { ItemId, PlanItem } from "../../plan/plan.ts";
import type { ItemReport } from "../dataplane.ts";

export const PLAN_PATH = "/v1/plan";
export const TOKEN_AUDIENCE = "mergeway.dev/controller";

export type PodMessage =
  | {
      readonly type: "hello";
      readonly gateway: string;
      readonly pod: string;
      /** Pods of earlier versions do not acknowledge. */
      readonly acknowledges?: boolean;
    }
  | { readonly type: "serve"; readonly have: Readonly<Record<ItemId, string>> }
  | {
      readonly type: "report";
      readonly reports: readonly ItemReport[];
      /** The digest of all that the pod serves, when that has changed (plan-digest.ts). */
      readonly holds?: string;
    }
  | { readonly type: "acknowledge"; readonly state: number };

export interface ControllerMessage {
  readonly type: "delta";
  /** Items encoded with `encodeItem`. */
  readonly upserts: readonly string[];
  readonly removes: readonly ItemId[];
  readonly synced?: true;
  readonly state?: number;
}

/** The one place where a key leaves the process: towards a pod that has proved to be its Gateway's. */
export function encodeItem(item: PlanItem): string {
  return JSON.stringify(item.type === "certificate" ? { ...item, key: item.key.reveal() } : item);
}

export function decodeItem(text: string): PlanItem {
  const item = JSON.parse(text) as PlanItem & { key?: unknown };
  return item.type === "certificate" ? { ...item, key: new PrivateKey(String(item.key)) } : item;
}

export function digestOf(encoded: string): string {
  return createHash("sha256").update(encoded).digest("base64url").slice(0, 22);
}
