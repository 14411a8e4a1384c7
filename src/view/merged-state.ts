/**
 * The merged state as the Gateway's owner sees it: Gateway → owners in order of precedence →
 * listeners → routes → backends. Plain data, made for showing: the terminal, the admin API and the
 * dashboard all draw from it. It names both sides of a conflict, so it is never for tenants.
 */
import type { GatewayStatusAddress } from "../api/gateway.ts";
import type { Key } from "../api/key.ts";
import type { PrecedenceRule } from "../engine/foundation/precedence.ts";
import type { Verdict } from "../engine/foundation/verdict.ts";

export interface MergedState {
  readonly gateways: readonly GatewayView[];
  /** Owners whose Gateway is not there. */
  readonly orphans: readonly OwnerView[];
  /** Routes that no listener has taken, each with the reason. */
  readonly strayRoutes: readonly StrayRoute[];
  /** Targets of policies that are not there, or not served, each with the reason. */
  readonly strayPolicies: readonly StrayPolicy[];
  /**
   * Gateways whose class belongs to another controller, and sets attached to them: nobody's
   * business here, but never hidden.
   */
  readonly foreign: readonly ObjectRef[];
}

export interface ObjectRef {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

export interface GatewayView extends ObjectRef {
  /** Whoever looks may not read it: others name it. */
  readonly isUnread?: true;
  readonly className: string;
  readonly addresses: readonly GatewayStatusAddress[];
  readonly attachedListenerSets: number;
  readonly conditions: readonly Verdict[];
  readonly owners: readonly OwnerView[];
}

export interface OwnerView extends ObjectRef {
  readonly role: "root" | "set" | "child";
  /** 1 comes first; 0: not known. */
  readonly precedence: number;
  /** Absent in files: then names decide. */
  readonly createdAt?: string;
  /** Whether its Gateway has taken it. */
  readonly attached: boolean;
  readonly conditions: readonly Verdict[];
  /** Attached to it as a whole; those of a Gateway reach all owners. */
  readonly policies: readonly PolicyView[];
  readonly listeners: readonly ListenerView[];
}

/** A policy of mergeway.dev at one of its targets. A TenantPolicy has no defaults and overrides. */
export interface PolicyView extends ObjectRef {
  /** The listener or rule that it is attached to; absent: the whole object. */
  readonly section?: string;
  /** Names of the fields that it sets. */
  readonly defaults: readonly string[];
  readonly overrides: readonly string[];
  /** What some of them say, by `section.field`: those that become part of rules or ports. */
  readonly values?: Readonly<Record<string, string>>;
  /** False: an older policy of its kind has the same target. */
  readonly counts: boolean;
  /** At this target; empty where a status has no room for it. */
  readonly conditions: readonly Verdict[];
  /** Of a TenantPolicy that counts and has quotas: how much each namespace uses, by name. */
  readonly quotas?: readonly QuotaView[];
}

/** How much a namespace uses of what it may have at the Gateway. */
export interface QuotaView {
  readonly namespace: string;
  /** Name of the rule that has the quota. */
  readonly rule?: string;
  readonly resources: readonly {
    readonly resource: string;
    /** What is beyond the limit is refused, or would be if the policy were enforced. */
    readonly used: number;
    readonly limit: number;
  }[];
}

export interface StrayPolicy extends ObjectRef {
  /** `section` is empty for the whole object. */
  readonly target: ListenerRef;
  readonly reason: string;
  readonly message: string;
}

/**
 * `serving` holds its port and hostname and the data plane has it; `waiting` for the data plane;
 * `failed` there; the others never got that far.
 */
export type ListenerState = "serving" | "waiting" | "failed" | "conflicted" | "refused";

export interface ListenerView {
  /** `Kind/namespace/name#section` */
  readonly key: string;
  readonly section: string;
  /** It may not be read: only the routes that name it are known, and no port or protocol. */
  readonly isUnread?: true;
  readonly port: number;
  readonly protocol: string;
  /** Empty takes every hostname. */
  readonly hostname: string;
  readonly state: ListenerState;
  /** Of whatever is not as it should be. */
  readonly reason?: string;
  readonly message?: string;
  /** A reference that does not resolve, though the listener is accepted. */
  readonly unresolved?: { readonly reason: string; readonly message: string };
  readonly heldBy?: ListenerRef;
  /** Why the holder comes first. */
  readonly decidedBy?: PrecedenceRule;
  readonly certificates: readonly CertificateView[];
  readonly policies: readonly PolicyView[];
  readonly attachedRoutes: number;
  readonly routes: readonly RouteView[];
}

export interface ListenerRef extends ObjectRef {
  readonly section: string;
}

export interface CertificateView {
  /** `namespace/name` of the Secret. */
  readonly secret: string;
  readonly names: readonly string[];
  readonly notAfter?: string;
  readonly problem?: string;
}

/** A route at one listener. */
export interface RouteView extends ObjectRef {
  /** Hostname patterns that it serves there. */
  readonly hostnames: readonly string[];
  readonly rules: number;
  readonly problems: readonly { readonly reason: string; readonly message: string }[];
  /** Attached to the route or to one of its rules. */
  readonly policies: readonly PolicyView[];
  readonly backends: readonly BackendView[];
}

export interface BackendView {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly port?: number;
  readonly weight: number;
  /** Ready endpoints; absent when the reference does not resolve. */
  readonly endpoints?: number;
  /** The Service may not be read: nothing is known of its endpoints. */
  readonly isUnread?: true;
  /** Attached to the Service or to this port of it; absent: none. */
  readonly policies?: readonly PolicyView[];
}

export interface StrayRoute extends ObjectRef {
  /** As the route asks for them; empty for every hostname of its listeners. */
  readonly hostnames: readonly string[];
  readonly parents: readonly {
    readonly parent: ListenerRef;
    readonly reason: string;
    readonly message: string;
  }[];
}

export function refOf(key: Key): ObjectRef {
  const [kind = "", namespace = "", name = ""] = key.split("/");
  return { kind, namespace, name };
}

export function listenerRefOf(listener: string): ListenerRef {
  const at = listener.lastIndexOf("#");
  return { ...refOf(listener.slice(0, at)), section: listener.slice(at + 1) };
}

/** `team-a/web`, or the bare name of what has no namespace. */
export function nameOf({ namespace, name }: ObjectRef): string {
  return namespace === "" ? name : `${namespace}/${name}`;
}

export function describe(ref: ObjectRef): string {
  return `${ref.kind} ${nameOf(ref)}`;
}

export function describeListener(ref: ListenerRef): string {
  return `${describe(ref)}, listener ${ref.section}`;
}
