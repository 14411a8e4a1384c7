import { performance } from "node:perf_hooks";
import type { RequestView } from "../../../matching/request.ts";
import type { Endpoint } from "../../../plan/backend.ts";
import type { ListenerItem } from "../../../plan/plan.ts";
import type { Rule } from "../../../plan/rule.ts";
import type { FieldList } from "../../authentication/foundation/decision.ts";
import type { RequestRecord, RequestTrace } from "../../request-record.ts";
import type { BufferedBytes } from "../limits/buffered-bytes.ts";
import type { TenantBudget } from "../limits/tenant-budgets.ts";
import type { Exchange } from "../message/exchange.ts";
import type { HeaderFields } from "../message/header-fields.ts";
import { wantsTrailers } from "../message/hop-by-hop.ts";
import type { RequestBody } from "../message/request-body.ts";
import type { RequestClient } from "./client-address.ts";

const NO_FIELDS: FieldList = [];

/** One request on its way: what was asked, what was decided, what came of it. */
export class RoutedRequest implements RequestView {
  readonly exchange: Exchange;
  readonly method: string;
  readonly authority: string;
  readonly path: string;
  query: string;
  /**
   * Those that are routed on and passed on: without what the client may not say or says to this
   * proxy alone.
   */
  readonly headers: HeaderFields;
  readonly requestId: string;
  readonly client: RequestClient;
  readonly #started: number = performance.now();
  listener: ListenerItem | undefined;
  /** Of the tenant that the request counts for, once it does. */
  budget: TenantBudget | undefined;
  /** What of it waits in memory; undefined where nobody's budget is concerned. */
  buffered: BufferedBytes | undefined;
  rule: Rule | undefined;
  /** The plan's own pattern: a label that no client can invent. */
  hostname: string | undefined;
  backend: string | undefined;
  endpoint: Endpoint | undefined;
  reason: string | undefined;
  /** Once it is known what is asked for, where requests are traced. */
  trace: RequestTrace | undefined;
  /** How often a backend was asked. */
  attempts = 0;
  /** Fields of the client that its guards have taken from it, also behind the body. */
  hides: ((name: string) => boolean) | undefined;
  /** Fields of its guards for the client. */
  answerFields: FieldList = NO_FIELDS;
  body: RequestBody | undefined;
  /** So much of the body, and no more, is read for the guards of its rule; 0: nothing. */
  askedBytes = 0;
  bytesReceived = 0;
  /** As the guards of its rule allow it. */
  maxBodyBytes: number = Number.POSITIVE_INFINITY;

  constructor(exchange: Exchange, target: TargetParts, requestId: string) {
    this.exchange = exchange;
    this.method = exchange.method;
    this.headers = target.headers;
    this.authority = target.authority;
    this.path = target.path;
    this.query = target.query;
    this.client = target.client;
    this.requestId = requestId;
  }

  header(name: string): string | undefined {
    if (name === "host") return this.authority;
    return this.headers.get(name) ?? this.#passedOnAnew(name);
  }

  /** Fields of the client's connection that the backend's connection gets again. */
  #passedOnAnew(name: string): string | undefined {
    if (name === "te") return wantsTrailers(this.exchange.headers.get("te")) ? "trailers" : undefined;
    if (!this.exchange.websocket) return undefined;
    if (name === "upgrade") return "websocket";
    return name === "connection" ? "upgrade" : undefined;
  }

  toRecord(): RequestRecord {
    const { exchange, listener, rule, hostname, backend, endpoint, reason } = this;
    const durationMs = performance.now() - this.#started;
    const record: { -readonly [Key in keyof RequestRecord]: RequestRecord[Key] } = {
      time: Date.now() - durationMs,
      client: this.client.address,
      protocol: exchange.protocol,
      scheme: this.client.scheme ?? (exchange.connection.secure ? "https" : "http"),
      method: this.method,
      authority: this.authority,
      path: this.path,
      requestId: this.requestId,
      gateway: exchange.connection.port.gateway,
      port: exchange.connection.port.port,
      status: exchange.status,
      bytesReceived: this.bytesReceived,
      bytesSent: exchange.bytesSent,
      durationMs,
    };
    const userAgent = exchange.headers.get("user-agent");
    if (userAgent !== undefined) record.userAgent = userAgent;
    if (this.trace !== undefined) record.trace = this.trace;
    if (listener !== undefined) record.listener = listener.id;
    if (hostname !== undefined) record.hostname = hostname;
    if (rule !== undefined) record.route = rule.origin;
    if (backend !== undefined) record.backend = backend;
    if (endpoint !== undefined) record.endpoint = `${endpoint.address}:${endpoint.port}`;
    if (reason !== undefined) record.reason = reason;
    if (this.attempts > 1) record.attempts = this.attempts;
    return record;
  }
}

export interface TargetParts {
  readonly authority: string;
  readonly path: string;
  readonly query: string;
  readonly headers: HeaderFields;
  readonly client: RequestClient;
}
