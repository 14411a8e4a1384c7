export type LogLevel = "debug" | "info" | "warn" | "error";

/**
 * Where the Kubernetes side tells what it does; everything is optional, and nothing of it may
 * throw.
 */
export interface KubernetesObserver {
  readonly log?: (level: LogLevel, message: string, fields?: Readonly<Record<string, unknown>>) => void;
  /** One request was answered (status 0: was not). */
  readonly onRequest?: (request: {
    readonly method: string;
    readonly status: number;
    readonly seconds: number;
  }) => void;
  /** A whole list was read. `again` is true for every list of a resource after its first. */
  readonly onList?: (list: {
    readonly resource: string;
    readonly objects: number;
    readonly again: boolean;
  }) => void;
  readonly onWatchEnd?: (end: { readonly resource: string; readonly why: string }) => void;
  readonly onWatchEvents?: (events: { readonly resource: string; readonly count: number }) => void;
}
