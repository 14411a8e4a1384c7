import type { Binding } from "../streams/tcp-port.ts";

/** What every kind of port can do, once it is made for its protocol. */
export interface PortServer {
  /** Rejects when the port cannot be bound. */
  listen(binding: Binding): Promise<unknown>;
  /** Accepts nobody any more; what has been accepted goes on. */
  stop(): void;
  /** Ends what is still there after the limit. */
  drain(graceMs: number): Promise<void>;
  /** After every change of the table. */
  reconcile?(): void;
}
