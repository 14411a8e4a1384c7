import type { GatewayStatusAddress, RouteGroupKind } from "../../api/gateway.ts";
import type { Key } from "../../api/key.ts";
import type { ParentReference } from "../../api/references.ts";
import type { Verdict } from "../foundation/verdict.ts";
import type { ListenerKey } from "../listeners/listeners.ts";

/** What the engine says of one object: everything that its status will say, without times. */
export type ObjectVerdict = ClassVerdict | OwnerVerdict | RouteVerdict | PolicyVerdict;

interface VerdictBase {
  /** The generation that this is about. */
  readonly generation: number;
}

export interface ClassVerdict extends VerdictBase {
  readonly type: "class";
  readonly conditions: readonly Verdict[];
}

/** Of a Gateway (root or child), a ListenerSet or an XListenerSet. */
export interface OwnerVerdict extends VerdictBase {
  readonly type: "gateway" | "set";
  /** The Gateway that the listeners belong to, accepted or not. */
  readonly gateway: Key;
  readonly conditions: readonly Verdict[];
  readonly listeners: readonly ListenerVerdict[];
  /** Gateways only. */
  readonly addresses?: readonly GatewayStatusAddress[];
  readonly attachedListenerSets?: number;
  /**
   * A set whose Gateway does not exist. Its status is shown on request, but written only where a
   * status was written before.
   */
  readonly orphan?: true;
}

export interface ListenerVerdict {
  readonly name: string;
  readonly port: number;
  readonly supportedKinds: readonly RouteGroupKind[];
  readonly attachedRoutes: number;
  readonly conditions: readonly Verdict[];
  /**
   * Who holds what this listener wanted: for the Gateway's owner, never part of a tenant's status.
   */
  readonly heldBy?: ListenerKey;
}

export interface RouteVerdict extends VerdictBase {
  readonly type: "route";
  readonly parents: readonly {
    readonly parentRef: ParentReference;
    readonly conditions: readonly Verdict[];
  }[];
}

export interface PolicyVerdict extends VerdictBase {
  readonly type: "policy";
  readonly ancestors: readonly {
    readonly ancestorRef: ParentReference;
    readonly conditions: readonly Verdict[];
  }[];
}
