import type { ListenerRef, ListenerState, ObjectRef } from "../merged-state.ts";

/** Neither: the listener is taken out. */
export interface ListenerEdit {
  /** Empty takes every hostname. */
  readonly hostname?: string;
  readonly port?: number;
}

/** `of` is `Kind/namespace/name`, or `Kind/namespace/name#listener`. */
export interface BlastQuestion extends ListenerEdit {
  readonly of: string;
}

export interface BlastRadius {
  /** Names that would be served by another listener, or by none. */
  readonly hostnames: readonly HostnameMove[];
  readonly listeners: readonly ListenerMove[];
  readonly routes: readonly RouteMove[];
  /** How many of each there are; the lists end earlier. */
  readonly totals: { readonly hostnames: number; readonly listeners: number; readonly routes: number };
}

export interface HostnameMove {
  readonly port: number;
  readonly hostname: string;
  readonly before?: ListenerRef;
  readonly after?: ListenerRef;
}

export interface ListenerMove {
  readonly listener: ListenerRef;
  /** Absent: it was not there, or would be gone. */
  readonly before?: ListenerState;
  readonly after?: ListenerState;
  readonly reason?: string;
  readonly message?: string;
}

export interface RouteMove {
  readonly route: ObjectRef;
  /** Parents that have accepted it. */
  readonly before: number;
  readonly after: number;
  /** What would be wrong that is not wrong now. */
  readonly problems: readonly { readonly reason: string; readonly message: string }[];
}
