/** What one step changed, in the words of the merged state. */
import type { ListenerRef, ListenerState, ObjectRef } from "./merged-state.ts";

export type StateChange = ListenerChange | RouteChange | HostChange | CertificateChange | BackendChange;

export interface ListenerChange {
  readonly type: "listener";
  readonly listener: ListenerRef;
  /** Absent: it was not there, or is gone. */
  readonly before?: ListenerState;
  readonly now?: ListenerState;
  readonly port: number;
  readonly protocol: string;
  readonly hostname: string;
  readonly reason?: string;
  readonly message?: string;
  readonly heldBy?: ListenerRef;
}

/** A route whose verdict has changed, with whatever is wrong with it now. */
export interface RouteChange {
  readonly type: "route";
  readonly route: ObjectRef;
  readonly removed: boolean;
  readonly problems: readonly { readonly reason: string; readonly message: string }[];
}

/** The rules under one hostname of one listener. */
export interface HostChange {
  readonly type: "host";
  readonly listener: ListenerRef;
  readonly hostname: string;
  readonly rules: number;
}

export interface CertificateChange {
  readonly type: "certificate";
  /** `namespace/name` of the Secret. */
  readonly secret: string;
  readonly names: readonly string[];
}

export interface BackendChange {
  readonly type: "backend";
  readonly service: { readonly namespace: string; readonly name: string; readonly port: number };
  readonly endpoints: number;
}
