/**
 * Everything that serves traffic in one thread: a table of the plan, the ports that are open, the
 * connections on them, and the pools towards the backends. The same in the main thread and in each
 * worker.
 */

import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { RoutingTable } from "../../../matching/routing-table.ts";
import type { ItemId, ListenerItem, PlanDelta, PortItem } from "../../../plan/plan.ts";
import type { RequestRecord } from "../../request-record.ts";
import { Connection, Connections } from "../limits/connections.ts";
import { Deadlines, tickFor } from "../limits/deadlines.ts";
import type { Limits, TrustedFront } from "../limits/options.ts";
import { TenantBudgets } from "../limits/tenant-budgets.ts";
import { acceptCleartext } from "../ports/accept-cleartext.ts";
import { acceptTls } from "../ports/accept-tls.ts";
import type { PortServer } from "../ports/port-server.ts";
import { type PortOutcome, Ports, samePlace } from "../ports/ports.ts";
import { SocketPort } from "../ports/socket-port.ts";
import { TlsServers } from "../ports/tls-servers.ts";
import type { Serving } from "../proxy/serve-request.ts";
import { serveHttp1 } from "../server/http1-connection.ts";
import { serveHttp2 } from "../server/http2-connection.ts";
import { type StreamTimeouts, serveStream } from "../streams/serve-stream.ts";
import { type Binding, TcpPort } from "../streams/tcp-port.ts";
import { UdpPort } from "../streams/udp-port.ts";
import { Upstreams } from "../upstream/upstreams.ts";

export interface ThreadOptions {
  readonly limits: Limits;
  readonly trustedHops: TrustedFront;
  readonly ticketSecret: Buffer;
  readonly bindingOf: (port: PortItem) => Binding;
  readonly onPortOutcome: (port: ItemId, outcome: PortOutcome) => void;
  readonly onRequestEnd?: ((record: RequestRecord) => void) | undefined;
  /** A connection to a listener whose tenant has as many as it may have. */
  readonly onConnectionRefused?: ((listener: ItemId) => void) | undefined;
  /** How many threads share the ports, and the limits of tenants. */
  readonly threads: number;
}

export class ServingThread {
  readonly #options: ThreadOptions;
  readonly #table: RoutingTable = new RoutingTable();
  readonly #connections: Connections = new Connections();
  readonly #budgets: TenantBudgets;
  readonly #upstreams: Upstreams;
  readonly #serving: Serving;
  readonly #deadlines: Deadlines;
  readonly #tlsServers: TlsServers;
  readonly #ports: Ports;
  readonly #streamTimeouts: StreamTimeouts;
  readonly #streams: AbortController = new AbortController();

  constructor(options: ThreadOptions) {
    this.#options = options;
    const { limits, trustedHops, onRequestEnd } = options;
    const table = this.#table;
    this.#deadlines = new Deadlines(tickFor(limits));
    const budgets = new TenantBudgets(options.threads);
    this.#budgets = budgets;
    this.#upstreams = new Upstreams({ table, limits, deadlines: this.#deadlines, tenants: budgets });
    this.#serving = { table, upstreams: this.#upstreams, budgets, limits, trustedHops, onRequestEnd };
    this.#streamTimeouts = {
      connectTimeoutMs: limits.connectTimeoutMs,
      idleTimeoutMs: limits.streamIdleTimeoutMs,
    };
    this.#tlsServers = new TlsServers({
      table,
      max: limits.secureContexts,
      handshakeTimeoutMs: limits.headerTimeoutMs || 120_000,
      ticketSecret: options.ticketSecret,
      onSecured: (stream, listener) => this.#serveSecured(stream, listener),
    });
    this.#ports = new Ports({
      bindingOf: options.bindingOf,
      create: (port) => this.#createPort(port),
      onOutcome: options.onPortOutcome,
    });
  }

  apply(delta: PlanDelta): void {
    const gone = delta.removes.map((id) => this.#table.get("listener", id) ?? this.#table.get("port", id));
    for (const item of delta.upserts) {
      const before = item.type === "port" ? this.#table.get("port", item.id) : undefined;
      if (item.type === "port" && before !== undefined && !samePlace(before, item)) gone.push(before);
    }
    this.#table.apply(delta);
    this.#budgets.apply(delta);
    this.#upstreams.apply(delta);
    this.#ports.apply(delta);
    for (const item of gone) {
      if (item?.type === "listener") this.#connections.leaveListener(item.id);
      else if (item?.type === "port") this.#connections.leavePort(item.id);
    }
  }

  async close(graceMs: number): Promise<void> {
    const limit = setTimeout(() => this.#streams.abort(), graceMs);
    await Promise.all([this.#ports.drain(graceMs), this.#connections.drain(graceMs)]);
    clearTimeout(limit);
    this.#streams.abort();
    this.#upstreams.close();
  }

  #createPort(port: PortItem): PortServer {
    const { limits } = this.#options;
    const table = this.#table;
    if (port.protocol === "http") {
      return new SocketPort(this.#connections, limits.maxConnections, (socket) =>
        this.#acceptCleartext(socket, port),
      );
    }
    if (port.protocol === "tls") {
      return new SocketPort(this.#connections, limits.maxConnections, (socket) =>
        this.#acceptTls(socket, port),
      );
    }
    if (port.protocol === "tcp") {
      const tcp = new TcpPort({
        port: port.id,
        table,
        timeouts: this.#streamTimeouts,
        maxConnections: limits.maxConnections,
        admit: this.#countConnection,
      });
      return {
        listen: (binding) => tcp.listen(binding),
        stop: () => tcp.stop(),
        drain: (ms) => tcp.drain(ms),
      };
    }
    const udp = new UdpPort({
      port: port.id,
      table,
      idleTimeoutMs: limits.udpIdleTimeoutMs,
      maxSessions: limits.udpSessions,
    });
    return {
      listen: (binding) => udp.listen(binding),
      stop: () => void udp.close(),
      drain: () => udp.close(),
      reconcile: () => udp.reconcile(),
    };
  }

  /** For as long as the socket is open; one too many is closed. */
  readonly #countConnection = (socket: Socket, { id }: ListenerItem): boolean => {
    const budget = this.#budgets.of(id);
    if (budget === undefined) return true;
    if (!budget.takeConnection()) {
      this.#options.onConnectionRefused?.(id);
      socket.destroy();
      return false;
    }
    socket.once("close", () => budget.giveBackConnection());
    return true;
  };

  #acceptCleartext(socket: Socket, port: PortItem): void {
    acceptCleartext(socket, this.#options.limits.headerTimeoutMs, (accepted, version) => {
      this.#serveHttp(accepted, version, new Connection(accepted, port));
    });
  }

  #acceptTls(socket: Socket, port: PortItem): void {
    const timeoutMs = this.#options.limits.headerTimeoutMs || 120_000;
    void acceptTls(
      socket,
      { port: port.id, table: this.#table, timeoutMs },
      (accepted, listener, serverName) => {
        // Before the handshake: that is what costs.
        if (!this.#countConnection(accepted, listener)) return;
        if (listener.tls?.mode === "Passthrough") this.#serveStream(accepted, listener, serverName);
        else this.#tlsServers.terminate(accepted, listener, serverName);
      },
    );
  }

  #serveSecured(stream: TLSSocket, listener: ListenerItem): void {
    // Node tells of a broken record and keeps the connection; nothing good can come on it any more
    // (RFC 8446, 6.2).
    stream.on("error", (error) => {
      if (!isOfVerification(stream, error)) stream.destroy();
    });
    const port = this.#table.get("port", listener.port);
    if (port === undefined) stream.destroy();
    else if (listener.protocol === "HTTPS") {
      const version = stream.alpnProtocol === "h2" ? "h2" : "http/1.1";
      this.#serveHttp(stream, version, new Connection(stream, port, listener.id));
    } else this.#serveStream(stream, listener, serverNameOf(stream));
  }

  #serveHttp(stream: Socket, version: "http/1.1" | "h2", connection: Connection): void {
    if (stream.destroyed) return;
    this.#connections.add(connection);
    if (version === "h2") serveHttp2(this.#serving, connection, stream);
    else serveHttp1(this.#serving, connection, this.#deadlines);
  }

  #serveStream(client: Socket, listener: ListenerItem, serverName: string | undefined): void {
    void serveStream({
      client,
      rule: this.#table.streamRule(listener.id, serverName),
      table: this.#table,
      passthrough: listener.tls?.mode === "Passthrough",
      clientCertificate: this.#upstreams.clientCertificate(listener.gateway),
      timeouts: this.#streamTimeouts,
      random: Math.random,
      signal: this.#streams.signal,
    });
  }
}

/**
 * OpenSSL leaves behind why a client's certificate could not be verified, and Node tells of it
 * later as of an error of the connection. With AllowInsecureFallback the connection goes on all the
 * same.
 */
function isOfVerification({ authorizationError }: TLSSocket, { message }: Error): boolean {
  return Boolean(authorizationError) && !message.includes(":SSL routines:");
}

function serverNameOf(stream: TLSSocket): string | undefined {
  const { servername } = stream as TLSSocket & { readonly servername?: string | false };
  return typeof servername === "string" && servername !== "" ? servername : undefined;
}
