/**
 * The stream between a controller and the data plane pods of its Gateways: one HTTP/2 request over
 * TLS, lines of JSON both ways.
 *
 *   pod → controller   hello        which Gateway, which pod
 *                      serve        asks for items, once, and says which it still has (by digest),
 *                                   so that only the difference is sent
 *                      report       the status of item versions, and what the pod serves, whichever
 *                                   controller sent it; digests of both
 *                      acknowledge  the pod serves the state that a delta named
 *   controller → pod   delta        items that appeared, changed or went away; `synced` ends the
 *                                   first difference; `state` numbers the plan that is now complete
 *                      tell         asks for all reports again: the digests of both sides differ
 *                      offer        the pod has lagged behind the leader's plan for too long and
 *                                   may take its items from here
 *
 * A pod connects to every replica of the controller and takes items from one of them at a time. All
 * replicas must know what is programmed, since any of them may be the leader that writes statuses.
 * Two of them must not both send items to one pod, since one may be behind. All of them compare
 * what a pod serves with their own plan, by digest.
 *
 * The protocol is level-triggered: both sides compare digests and repeat what differs.
 * docs/reference/messages.md has every message, and what happens when it is lost, late, doubled or
 * out of order.
 *
 * Protocol 1 had no digests in reports, and neither `tell` nor `offer`. A pod names its protocol in
 * `hello`, a controller in a header of its response. Both sides support both versions.
 *
 * The controller proves itself by its certificate, the pod by its ServiceAccount's token. A pod
 * receives the items of its own Gateway and no others.
 */

import { digest } from "../../../digest/digest.ts";
import { withCredentials, withPlainCredentials } from "../../../plan/authentication.ts";
import { PrivateKey } from "../../../plan/certificate.ts";
import type { ItemReport } from "../../../plan/item-report.ts";
import type { ItemId, PlanItem } from "../../../plan/plan.ts";

export const PLAN_PATH = "/v1/plan";
export const TOKEN_AUDIENCE = "mergeway.dev/controller";
export const PROTOCOL = 2;
export const PROTOCOL_HEADER = "mergeway-protocol";

/** A report on one version of an item; `of` is that version's digest. Protocol 1 has no `of`. */
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
  /** Begins a complete list that replaces all earlier reports; a message with `told` ends it. */
  readonly whole?: true;
  /** Items that the pod no longer has: their reports are void. */
  readonly forgets?: readonly ItemId[];
  /** The digest of the plan that the pod serves (plan-digest.ts). */
  readonly holds?: string;
  /**
   * The release of the controller that sent the pod's items. Releases may encode items differently,
   * so their digests cannot be compared.
   */
  readonly release?: string;
  /** The digest of all valid reports, this message included (report-state.ts). */
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

/** Pods of protocol 1 read every message as a delta: send them nothing else. */
export type ControllerMessage = DeltaMessage | { readonly type: "tell" } | { readonly type: "offer" };

/**
 * The only place where a private key leaves the process: to an authenticated pod of its Gateway.
 */
export function encodeItem(item: PlanItem): string {
  if (item.type === "certificate") return JSON.stringify({ ...item, key: item.key.reveal() });
  if (item.type === "guard") return JSON.stringify({ ...item, check: withPlainCredentials(item.check) });
  return JSON.stringify(item);
}

export function decodeItem(text: string): PlanItem {
  const item = JSON.parse(text) as PlanItem & { key?: unknown };
  if (item.type === "certificate") return { ...item, key: new PrivateKey(String(item.key)) };
  return item.type === "guard" ? { ...item, check: withCredentials(item.check) } : item;
}

export function digestOf(encoded: string): string {
  return digest(encoded, "base64url", 22);
}
