import { type ClientHttp2Session, connect as connectSession } from "node:http2";
import type { Socket } from "node:net";
import type { Limits } from "../options.ts";
import type { Connector } from "./connector.ts";
import { H2Call } from "./h2-call.ts";
import type { Upstream, UpstreamCall, UpstreamHandler, UpstreamRequest } from "./upstream.ts";

const STREAMS_PER_SESSION = 256;
const SESSION_IDLE_MS = 60_000;
const WINDOW_BYTES = 1024 * 1024;

/** HTTP/2, with prior knowledge or by ALPN, over as many sessions as the streams need. */
export class H2Upstream implements Upstream {
  readonly #connector: Connector;
  readonly #limits: Limits;
  /** Open streams of each session that takes more of them; node:http2 does not tell. */
  readonly #sessions: Map<ClientHttp2Session, number> = new Map();
  #waiting: H2Call[] = [];
  #opening = false;
  #active = 0;
  #closed = false;

  constructor(connector: Connector, limits: Limits) {
    this.#connector = connector;
    this.#limits = limits;
  }

  get idle(): boolean {
    return this.#active === 0;
  }

  send(request: UpstreamRequest, handler: UpstreamHandler): UpstreamCall {
    this.#active++;
    const call = new H2Call(request, handler, () => {
      this.#active--;
    });
    this.#waiting.push(call);
    this.#serveWaiting();
    return call;
  }

  close(): void {
    this.#closed = true;
    if (this.#waiting.length > 0) return;
    for (const session of this.#sessions.keys()) session.close();
  }

  destroy(): void {
    this.close();
    for (const session of this.#sessions.keys()) session.destroy();
  }

  /** First come, first served; another session is opened when all are full. */
  #serveWaiting(): void {
    this.#waiting = this.#waiting.filter((call) => !call.over);
    while (this.#waiting.length > 0) {
      const session = this.#freeSession();
      if (session === undefined) break;
      this.#waiting.shift()?.start(session, this.#limits.backendResponseTimeoutMs, (stream) => {
        this.#count(session, 1);
        stream.once("close", () => {
          this.#count(session, -1);
          this.#serveWaiting();
        });
      });
    }
    const mayOpen = !this.#opening && this.#sessions.size < this.#limits.connectionsPerEndpoint;
    if (this.#waiting.length > 0 && mayOpen) this.#open();
    if (this.#closed) this.close();
  }

  #freeSession(): ClientHttp2Session | undefined {
    for (const [session, streams] of this.#sessions) {
      if (session.closed || session.destroyed) continue;
      const allowed = session.remoteSettings.maxConcurrentStreams ?? STREAMS_PER_SESSION;
      if (streams < Math.min(allowed, STREAMS_PER_SESSION)) return session;
    }
    return undefined;
  }

  #count(session: ClientHttp2Session, change: 1 | -1): void {
    const streams = this.#sessions.get(session);
    if (streams !== undefined) this.#sessions.set(session, streams + change);
  }

  #open(): void {
    this.#opening = true;
    this.#connector.connect("h2", (error, socket) => {
      if (socket === undefined) this.#onOpenFailed(error?.message ?? "no connection");
      else this.#greet(socket);
    });
  }

  /** A session is of use once the backend has said how many streams it takes. */
  #greet(socket: Socket): void {
    const session = connectSession("http://backend.invalid", {
      createConnection: () => socket,
      settings: { enablePush: false, initialWindowSize: WINDOW_BYTES },
      maxHeaderListPairs: this.#limits.headerCount,
    });
    const limit = setTimeout(() => session.destroy(), this.#limits.connectTimeoutMs || SESSION_IDLE_MS);
    let greeted = false;
    session.on("error", ignore);
    session.once("remoteSettings", () => {
      greeted = true;
      clearTimeout(limit);
      session.setLocalWindowSize(WINDOW_BYTES * 4);
      session.setTimeout(SESSION_IDLE_MS, () => {
        if ((this.#sessions.get(session) ?? 0) === 0) session.close();
      });
      this.#sessions.set(session, 0);
      this.#opening = false;
      this.#serveWaiting();
    });
    session.on("goaway", () => this.#sessions.delete(session));
    session.once("close", () => {
      clearTimeout(limit);
      this.#sessions.delete(session);
      if (!greeted) this.#onOpenFailed("the backend does not speak HTTP/2");
    });
  }

  /** Those that wait are served by the sessions that are there; without any they have nothing to wait for. */
  #onOpenFailed(message: string): void {
    this.#opening = false;
    if (this.#sessions.size > 0) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const call of waiting) call.fail("connect", message);
  }
}

function ignore(): void {}
