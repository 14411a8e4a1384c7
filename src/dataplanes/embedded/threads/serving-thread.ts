/**
 * Everything that serves traffic in one thread: a table of the plan, the ports that are open, the
 * connections on them, and the pools towards the backends. The same in the main thread and in each
 * worker.
 */

import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";
import { RoutingTable } from "../../../matching/routing-table.ts";
import type { ItemId, ListenerItem, PlanDelta, PortItem } from "../../../plan/plan.ts";
import { Authenticator } from "../../authentication/authenticator.ts";
import type { RequestRecord } from "../../request-record.ts";
import type { SamplingSettings } from "../../telemetry/telemetry-settings.ts";
import { Sampler } from "../../telemetry/trace-context.ts";
import type { TrafficTally } from "../../traffic/traffic-tally.ts";
import { type BucketMemory, RateBuckets } from "../guards/rate-buckets.ts";
import { CompressorBudget } from "../limits/compressor-budget.ts";
import { type Arrival, Connection, Connections, type Handshake, peerOf } from "../limits/connections.ts";
import { Deadlines, tickFor } from "../limits/deadlines.ts";
import { type Limits, limitsOfPort, type TrustedFront } from "../limits/options.ts";
import { TenantBudgets } from "../limits/tenant-budgets.ts";
import { acceptCleartext } from "../ports/accept-cleartext.ts";
import { acceptTls } from "../ports/accept-tls.ts";
import type { PortServer } from "../ports/port-server.ts";
import { type PortOutcome, Ports, samePlace } from "../ports/ports.ts";
import { readProxyHeader } from "../ports/proxy-header.ts";
import { SocketPort } from "../ports/socket-port.ts";
import { type Secured, TlsServers } from "../ports/tls-servers.ts";
import type { Serving } from "../proxy/serve-request.ts";
import { serveHttp1 } from "../server/http1-connection.ts";
import { serveHttp2 } from "../server/http2-connection.ts";
import { forwardedText } from "../sockets/client-certificate.ts";
import { transportUnder } from "../sockets/connect-endpoint.ts";
import { type StreamTimeouts, serveStream } from "../streams/serve-stream.ts";
import { type Binding, TcpPort } from "../streams/tcp-port.ts";
import { UdpPort } from "../streams/udp-port.ts";
import { Upstreams } from "../upstream/upstreams.ts";

export interface ThreadOptions {
  readonly limits: Limits;
  readonly trustedHops: TrustedFront;
  readonly ticketSecret: Buffer;
  readonly buckets: BucketMemory;
  readonly bindingOf: (port: PortItem) => Binding;
  readonly onPortOutcome: (port: ItemId, outcome: PortOutcome) => void;
  readonly onRequestEnd?: ((record: RequestRecord) => void) | undefined;
  /** Whether it is called for requests that are sampled alone. */
  readonly onlySampled: boolean;
  /** Absent: requests are not traced. */
  readonly tracing: SamplingSettings | undefined;
  readonly tally?: TrafficTally | undefined;
  /** How many threads share the ports, and the limits of tenants. */
  readonly threads: number;
}

export class ServingThread {
  readonly #options: ThreadOptions;
  readonly #table: RoutingTable = new RoutingTable();
  readonly #connections: Connections = new Connections();
  /** Of connections in a TLS handshake, by their TCP sockets. */
  readonly #arrivals: WeakMap<Duplex, Arrival> = new WeakMap();
  readonly #budgets: TenantBudgets;
  readonly #upstreams: Upstreams;
  readonly #authenticator: Authenticator;
  readonly #serving: Serving;
  /** Of ports with limits of their own; items are immutable. */
  readonly #servings: WeakMap<PortItem, Serving> = new WeakMap();
  readonly #deadlines: Deadlines;
  readonly #tlsServers: TlsServers;
  readonly #ports: Ports;
  readonly #streamTimeouts: StreamTimeouts;
  readonly #streams: AbortController = new AbortController();

  constructor(options: ThreadOptions) {
    this.#options = options;
    const { limits, trustedHops, tally, tracing } = options;
    const table = this.#table;
    this.#deadlines = new Deadlines(tickFor(limits));
    const budgets = new TenantBudgets(options.threads);
    this.#budgets = budgets;
    this.#upstreams = new Upstreams({ table, limits, deadlines: this.#deadlines, tenants: budgets });
    const buckets = new RateBuckets(options.buckets);
    const upstreams = this.#upstreams;
    this.#authenticator = new Authenticator({
      guard: (id) => table.get("guard", id),
      backend: (id) => table.get("backend", id),
      clientCertificate: (gateway) => upstreams.clientCertificate(gateway),
    });
    const authenticator = this.#authenticator;
    this.#serving = {
      ...{ table, upstreams, budgets, buckets, authenticator },
      compressors: new CompressorBudget(),
      ...{ limits, trustedHops, onRequestEnd: requestEnd(options) },
      sampler: tracing && new Sampler(tracing),
    };
    this.#streamTimeouts = {
      connectTimeoutMs: limits.connectTimeoutMs,
      idleTimeoutMs: limits.streamIdleTimeoutMs,
    };
    this.#tlsServers = new TlsServers({
      table,
      max: limits.secureContexts,
      handshakeTimeoutMs: limits.headerTimeoutMs || 120_000,
      ticketSecret: options.ticketSecret,
      onSecured: (stream, secured) => this.#serveSecured(stream, secured),
      onHandshake: (result) => tally?.countHandshake(result),
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
    this.#authenticator.close();
  }

  #createPort(port: PortItem): PortServer {
    const { limits } = this.#options;
    const table = this.#table;
    if (port.protocol === "http") {
      return new SocketPort(this.#connections, limits.maxConnections, (socket) =>
        this.#arrive(socket, port, (arrival) => this.#acceptCleartext(socket, arrival)),
      );
    }
    if (port.protocol === "tls") {
      return new SocketPort(this.#connections, limits.maxConnections, (socket) =>
        this.#arrive(socket, port, (arrival) => this.#acceptTls(socket, arrival)),
      );
    }
    if (port.protocol === "tcp") {
      const tcp = new TcpPort({
        port: port.id,
        table,
        timeouts: this.#streamTimeouts,
        maxConnections: limits.maxConnections,
        admit: this.#countConnection,
        arrive: (socket, serve) => this.#arrive(socket, port, ({ client }) => serve(client)),
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
      this.#options.tally?.countRefusedConnection(id);
      socket.destroy();
      return false;
    }
    socket.once("close", () => budget.giveBackConnection());
    return true;
  };

  /** Finds out who the client is, before anything else is read. */
  #arrive(socket: Socket, opened: PortItem, serve: (arrival: Arrival) => void): void {
    this.#countOpen(socket);
    const port = this.#table.get("port", opened.id) ?? opened;
    const proxyProtocol = port.clientAddress?.proxyProtocol;
    const peer = peerOf(socket);
    if (proxyProtocol === undefined) {
      serve({ port, client: peer });
      return;
    }
    const timeoutMs = this.#options.limits.headerTimeoutMs || 120_000;
    readProxyHeader(socket, { required: proxyProtocol === "required", timeoutMs }, (address) =>
      serve({ port, client: address ?? peer }),
    );
  }

  #countOpen(socket: Socket): void {
    const { tally } = this.#options;
    if (tally === undefined) return;
    tally.countConnections(1);
    tally.open++;
    socket.once("close", () => tally.open--);
  }

  #acceptCleartext(socket: Socket, arrival: Arrival): void {
    const { headerTimeoutMs } = limitsOfPort(arrival.port, this.#options.limits);
    acceptCleartext(socket, headerTimeoutMs, (accepted, version) => {
      this.#serveHttp(accepted, version, new Connection(accepted, arrival));
    });
  }

  #acceptTls(socket: Socket, arrival: Arrival): void {
    const timeoutMs = this.#options.limits.headerTimeoutMs || 120_000;
    void acceptTls(
      socket,
      {
        port: arrival.port.id,
        table: this.#table,
        timeoutMs,
        onRefused: (result) => this.#options.tally?.countHandshake(result),
      },
      (accepted, listener, serverName) => {
        // Before the handshake: that is what costs.
        if (!this.#countConnection(accepted, listener)) return;
        if (listener.tls?.mode === "Passthrough") {
          this.#serveStream(accepted, listener, { serverName, address: arrival.client });
          return;
        }
        this.#arrivals.set(accepted, arrival);
        this.#tlsServers.terminate(accepted, listener, serverName);
      },
    );
  }

  #serveSecured(stream: TLSSocket, secured: Secured): void {
    const { listener } = secured;
    // Node tells of a broken record and keeps the connection; nothing good can come on it any more
    // (RFC 8446, 6.2).
    stream.on("error", (error) => {
      if (!isOfVerification(stream, error)) stream.destroy();
    });
    const arrival = this.#arrivalOf(stream, listener);
    if (arrival === undefined) stream.destroy();
    else if (listener.protocol === "HTTPS") {
      const version = stream.alpnProtocol === "h2" ? "h2" : "http/1.1";
      this.#serveHttp(stream, version, new Connection(stream, arrival, handshakeOf(stream, secured)));
    } else {
      const serverName = serverNameOf(stream);
      // Not within the callback of the handshake: Node crashes if the TCP socket is reset there.
      setImmediate(() => {
        if (stream.destroyed) return;
        this.#serveStream(stream, listener, { serverName, address: arrival.client });
      });
    }
  }

  /** Undefined: the port has gone, or it cannot be told who the client is. */
  #arrivalOf(stream: TLSSocket, listener: ListenerItem): Arrival | undefined {
    const port = this.#table.get("port", listener.port);
    const known = port && this.#arrivals.get(transportUnder(stream));
    if (known !== undefined || port === undefined) return known;
    // Without the socket under the stream, only a port that asks for no header knows its client.
    const named = port.clientAddress?.proxyProtocol !== undefined;
    return named ? undefined : { port, client: peerOf(stream) };
  }

  #serveHttp(stream: Socket, version: "http/1.1" | "h2", connection: Connection): void {
    if (stream.destroyed) return;
    this.#connections.add(connection);
    const serving = this.#servingAt(connection.port);
    if (version === "h2") serveHttp2(serving, connection, stream);
    else serveHttp1(serving, connection, this.#deadlines);
  }

  /** With the limits of the port. */
  #servingAt(port: PortItem): Serving {
    if (port.clientLimits === undefined) return this.#serving;
    const known = this.#servings.get(port);
    if (known !== undefined) return known;
    const serving = { ...this.#serving, limits: limitsOfPort(port, this.#options.limits) };
    this.#servings.set(port, serving);
    return serving;
  }

  #serveStream(
    client: Socket,
    listener: ListenerItem,
    { serverName, address }: { readonly serverName: string | undefined; readonly address: string },
  ): void {
    void serveStream({
      client,
      address,
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

function handshakeOf(stream: TLSSocket, { listener, validation }: Secured): Handshake {
  const forward = validation?.mode === "AllowValidOnly" ? validation.forward : undefined;
  const certificate = forward && stream.getPeerX509Certificate();
  return {
    listener: listener.id,
    ...(validation === undefined ? {} : { validation }),
    ...(forward && certificate ? { clientCertificate: forwardedText(certificate, forward) } : {}),
  };
}

function serverNameOf(stream: TLSSocket): string | undefined {
  const { servername } = stream as TLSSocket & { readonly servername?: string | false };
  return typeof servername === "string" && servername !== "" ? servername : undefined;
}

/** A request is counted in the thread that served it. */
function requestEnd({ tally, onRequestEnd, onlySampled }: ThreadOptions): ThreadOptions["onRequestEnd"] {
  if (tally === undefined && !onlySampled) return onRequestEnd;
  return (record) => {
    tally?.countRequest(record);
    if (!onlySampled || record.trace?.isSampled === true) onRequestEnd?.(record);
  };
}
