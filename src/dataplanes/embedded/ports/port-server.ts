import type { Binding } from "../streams/tcp-port.ts";

/** What every kind of port can do, once it is made for its protocol. */
export interface PortServer {
  /** Rejects when the port cannot be bound. */
  listen(binding: Binding): Promise<unknown>;
  /** Stops accepting. Open connections stay open. */
  stop(): void;
  /** Closes connections that are still open after the time limit. */
  drain(graceMs: number): Promise<void>;
  /** After every change of the table. */
  reconcile?(): void;
}
