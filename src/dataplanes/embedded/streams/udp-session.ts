import { createSocket, type Socket } from "node:dgram";
import { isIPv6 } from "node:net";
import type { Endpoint } from "../../../plan/backend.ts";
import type { ItemId } from "../../../plan/plan.ts";

export interface UdpSessionOptions {
  readonly key: string;
  readonly client: { readonly address: string; readonly port: number };
  readonly backend: ItemId;
  readonly endpoint: Endpoint;
  readonly onReply: (session: UdpSession, datagram: Buffer) => void;
  /** The endpoint refuses or cannot be reached. */
  readonly onError: (session: UdpSession, error: Error) => void;
}

/** Datagrams that wait for the socket; more are lost, as on any full link. */
const MAX_WAITING = 16;
/** Bytes that the kernel has not taken yet. */
export const MAX_QUEUED_BYTES: number = 1024 * 1024;

/**
 * The session of one client with one endpoint. It has its own socket, so that responses find their
 * client.
 */
export class UdpSession {
  readonly key: string;
  readonly client: UdpSessionOptions["client"];
  readonly endpoint: Endpoint;
  readonly backend: ItemId;
  /**
   * Whether the backend has answered, and whether the client has then gone on: a forged source
   * cannot.
   */
  state: "new" | "answered" | "established" = "new";
  lastActive: number;

  readonly #socket: Socket;
  #waiting: Buffer[] | undefined = [];
  #closed = false;

  constructor(options: UdpSessionOptions, now: number) {
    const { endpoint, onReply, onError } = options;
    this.key = options.key;
    this.client = options.client;
    this.backend = options.backend;
    this.endpoint = endpoint;
    this.lastActive = now;
    this.#socket = createSocket(isIPv6(endpoint.address) ? "udp6" : "udp4");
    // Connected, so that only the endpoint's datagrams arrive and its ICMP errors are told.
    this.#socket.on("connect", () => this.#flush());
    this.#socket.on("message", (datagram) => {
      if (!this.#closed) onReply(this, datagram);
    });
    this.#socket.on("error", (error) => {
      if (!this.#closed) onError(this, error);
    });
    this.#socket.connect(endpoint.port, endpoint.address);
  }

  send(datagram: Buffer): boolean {
    if (this.#closed) return false;
    if (this.#waiting !== undefined) {
      if (this.#waiting.length >= MAX_WAITING) return false;
      this.#waiting.push(datagram);
      return true;
    }
    if (this.#socket.getSendQueueSize() > MAX_QUEUED_BYTES) return false;
    this.#socket.send(datagram, this.#sent);
    return true;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#waiting = undefined;
    this.#socket.close();
  }

  #flush(): void {
    const waiting = this.#waiting ?? [];
    this.#waiting = undefined;
    if (!this.#closed) for (const datagram of waiting) this.send(datagram);
  }

  readonly #sent = (error: Error | null): void => {
    if (error !== null && !this.#closed) this.#socket.emit("error", error);
  };
}
