/**
 * The stream between a controller and the data plane pods of its Gateways: one HTTP/2 request over
 * TLS, lines of JSON both ways.
 *
 *   pod → controller   hello        which Gateway, which pod
 *                      serve        asks for items, once, and says which it still has (by digest),
 *                                   so that only the difference is sent
 *                      report       what became of item versions; what the pod serves, whoever it
 *                                   came from; digests of both
 *                      acknowledge  the state that the pod serves, as the delta called it
 *   controller → pod   delta        items that appeared, changed or went away; `synced` ends the
 *                                   first difference; `state` names what is complete with it
 *                      tell         asks for all reports anew: their digest is another here than at
 *                                   the pod
 *                      offer        the leader's plan is another than the pod's, for too long: the
 *                                   pod may take its items from here
 *
 * A pod speaks to every replica of the controller and takes items from one of them at a time: all
 * replicas must know what is programmed, since any of them may be the leader that writes statuses,
 * but two of them must not both feed one pod, since one may be behind. All of them compare what a
 * pod serves with their own plan, by digest.
 *
 * Nothing here is said once and relied upon: docs/reference/messages.md has every message, and what
 * happens when it is lost, late, doubled or out of order.
 *
 * Protocol 1 had no digests in reports, and neither `tell` nor `offer`. A pod names its protocol in
 * `hello`, a controller in a header of its answer; both serve either.
 *
 * The controller is known by its certificate, the pod by its ServiceAccount's token; a pod is given
 * the items of its own Gateway and no others.
 */

import { createHash } from "node:crypto";
import { PrivateKey } from "../../../plan/certificate.ts";
import type { ItemReport } from "../../../plan/item-report.ts";
import type { ItemId, PlanItem } from "../../../plan/plan.ts";

export const PLAN_PATH = "/v1/plan";
export const TOKEN_AUDIENCE = "mergeway.dev/controller";
export const PROTOCOL = 2;
export const PROTOCOL_HEADER = "mergeway-protocol";

/**
 * A report of one version of an item, by the digest of its encoding; pods of protocol 1 name none.
 */
export interface VersionReport extends ItemReport {
  readonly of?: string;
}

export interface HelloMessage {
  readonly type: "hello";
  readonly gateway: string;
  readonly pod: string;
  /** Pods of earlier versions do not acknowledge. */
  readonly acknowledges?: boolean;
  readonly protocol?: number;
}

export interface ReportMessage {
  readonly type: "report";
  readonly reports: readonly VersionReport[];
  /** These are all; what was said before is void. More may follow until `told` closes them. */
  readonly whole?: true;
  /** Of these items the pod says nothing any more: it does not have them. */
  readonly forgets?: readonly ItemId[];
  /** The digest of all that the pod serves (plan-digest.ts). */
  readonly holds?: string;
  /**
   * The release of the controller that the pod's items come from: digests of another release's
   * items are not comparable.
   */
  readonly release?: string;
  /** The digest of all reports that stand, this message included (report-state.ts). */
  readonly told?: string;
}

export type PodMessage =
  | HelloMessage
  | { readonly type: "serve"; readonly have: Readonly<Record<ItemId, string>> }
  | ReportMessage
  | { readonly type: "acknowledge"; readonly state: number };

export interface DeltaMessage {
  readonly type: "delta";
  /** Items encoded with `encodeItem`. */
  readonly upserts: readonly string[];
  readonly removes: readonly ItemId[];
  readonly synced?: true;
  readonly state?: number;
  readonly release?: string;
}

/** Pods of protocol 1 take every message for a delta: they must be sent nothing else. */
export type ControllerMessage = DeltaMessage | { readonly type: "tell" } | { readonly type: "offer" };

/**
 * The one place where a key leaves the process: towards a pod that has proved to be its Gateway's.
 */
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
