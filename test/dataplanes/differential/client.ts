/** Sends requests over real sockets and says in a few words what came of them. */

import { once } from "node:events";
import { Agent, type ClientRequest, type IncomingMessage, request as requestHttp } from "node:http";
import { type ClientHttp2Session, connect as connectHttp2, constants } from "node:http2";
import { type RequestOptions, request as requestHttps, Agent as TlsAgent } from "node:https";
import { isIP } from "node:net";
import { type ConnectionOptions, createSecureContext, type SecureContext } from "node:tls";
import { hostnameOf } from "../../../src/matching/authority.ts";
import type { TestCertificate } from "../support/certificates.ts";
import { ANSWERED_BY } from "./names.ts";
import type { WireRequest } from "./requests.ts";

export type Outcome =
  /** No HTTP answer: no connection, no handshake, or cut off without a word. */
  | { readonly refused: string }
  | {
      readonly status: number;
      readonly backend?: string;
      readonly location?: string;
      /** Of an answer that came from no backend. */
      readonly grpcStatus?: number;
    };

/** An agent hands everything on to TLS; the types of Node know of some of it. */
type SecureRequestOptions = RequestOptions & Pick<ConnectionOptions, "ALPNProtocols">;

const TIME_LIMIT_MS = 10_000;

/**
 * A client of one data plane. Cleartext connections outlive changes of the configuration unless it
 * is told otherwise; TLS ones are for one configuration.
 */
export class Client {
  readonly #portOf: (port: number) => number;
  readonly #anonymous: SecureContext = createSecureContext();
  readonly #certified: SecureContext;
  readonly #cleartext: Map<number, Agent> = new Map();
  /** One for each kind of client: an agent does not tell their connections apart. */
  #secure: readonly [anonymous: TlsAgent, certified: TlsAgent] = newTlsAgents();
  #sessions: Map<string, ClientHttp2Session> = new Map();

  constructor(portOf: (port: number) => number, certificate: TestCertificate) {
    this.#portOf = portOf;
    this.#certified = createSecureContext({ ...certificate });
  }

  async send(request: WireRequest): Promise<Outcome> {
    try {
      return await (request.version === "h1" ? this.#sendHttp1(request) : this.#sendHttp2(request));
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      if (code === "ETIMEDOUT") throw error;
      return { refused: code ?? message };
    }
  }

  /** Who comes after a change of the configuration opens TLS connections of its own. */
  forget(): void {
    for (const agent of this.#secure) agent.destroy();
    this.#secure = newTlsAgents();
    for (const session of this.#sessions.values()) session.destroy();
    this.#sessions = new Map();
  }

  /** Hangs up cleartext connections to a port. */
  leave(port: number): void {
    this.#cleartext.get(port)?.destroy();
    this.#cleartext.delete(port);
  }

  close(): void {
    this.forget();
    for (const port of this.#cleartext.keys()) this.leave(port);
  }

  #cleartextAgent(port: number): Agent {
    const agent = this.#cleartext.get(port) ?? new Agent({ keepAlive: true });
    this.#cleartext.set(port, agent);
    return agent;
  }

  async #sendHttp1(request: WireRequest): Promise<Outcome> {
    const sent = this.#openHttp1(request);
    try {
      return await outcomeOf(sent);
    } catch (error) {
      // A kept connection may close at the very moment of its reuse; every client asks again then.
      if (!sent.reusedSocket) throw error;
      return await outcomeOf(this.#openHttp1(request, false));
    }
  }

  #openHttp1(request: WireRequest, agent?: false): ClientRequest {
    const { scheme, port, method, authority, headers, clientCertificate } = request;
    const [anonymous, certified] = this.#secure;
    const secureAgent = clientCertificate === true ? certified : anonymous;
    const options = {
      host: "127.0.0.1",
      port: this.#portOf(port),
      method,
      path: targetOf(request),
      headers: ["Host", authority, ...headers.flat()],
      agent: agent ?? (scheme === "http" ? this.#cleartextAgent(port) : secureAgent),
    };
    if (scheme === "http") return requestHttp(options);
    const secure: SecureRequestOptions = { ...options, ...this.#tls(request), ALPNProtocols: ["http/1.1"] };
    return requestHttps(secure);
  }

  async #sendHttp2(request: WireRequest): Promise<Outcome> {
    const session = this.#session(request);
    const head: Record<string, string | string[]> = {
      ":method": request.method,
      ":path": targetOf(request),
      ":authority": request.authority,
      ":scheme": request.scheme,
    };
    for (const [name, value] of request.headers) {
      const key = name.toLowerCase();
      head[key] = [...[head[key] ?? []].flat(), value];
    }
    if (session.destroyed) throw new Error("the session is gone");
    const stream = session.request(head, { endStream: true });
    stream.setTimeout(TIME_LIMIT_MS, () => stream.destroy(timeout()));
    const failed = new Promise<never>((_resolve, reject) => {
      stream.once("error", reject);
      stream.once("close", () => reject(new Error("the stream closed without an answer")));
    });
    failed.catch(() => {});
    const [answer] = (await Promise.race([once(stream, "response"), failed])) as [
      Readonly<Record<string, string | number | undefined>>,
    ];
    stream.resume();
    stream.close(constants.NGHTTP2_NO_ERROR);
    return describe(Number(answer[":status"]), answer);
  }

  #session(request: WireRequest): ClientHttp2Session {
    const { scheme, port, clientCertificate } = request;
    const tls = scheme === "https" ? this.#tls(request) : {};
    const key = [scheme, port, tls.servername, clientCertificate].join(" ");
    let session = this.#sessions.get(key);
    if (session === undefined) {
      session = connectHttp2(`${scheme}://127.0.0.1:${this.#portOf(port)}`, {
        ...tls,
        ALPNProtocols: ["h2"],
      });
      session.on("error", () => {});
      this.#sessions.set(key, session);
    }
    return session;
  }

  #tls(request: WireRequest): ConnectionOptions {
    return {
      servername: serverNameOf(request),
      // Which certificate is shown is the contract suite's business.
      rejectUnauthorized: false,
      secureContext: request.clientCertificate === true ? this.#certified : this.#anonymous,
    };
  }
}

function newTlsAgents(): readonly [TlsAgent, TlsAgent] {
  return [new TlsAgent({ keepAlive: true }), new TlsAgent({ keepAlive: true })];
}

async function outcomeOf(sent: ClientRequest): Promise<Outcome> {
  sent.setTimeout(TIME_LIMIT_MS, () => sent.destroy(timeout()));
  sent.end();
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  answer.resume();
  await once(answer, "end");
  return describe(answer.statusCode ?? 0, answer.headers);
}

function describe(status: number, headers: Readonly<Record<string, unknown>>): Outcome {
  const backend = headers[ANSWERED_BY];
  const location = headers["location"];
  const grpcStatus = headers["grpc-status"];
  return {
    status,
    ...(backend === undefined ? {} : { backend: String(backend) }),
    ...(location === undefined ? {} : { location: String(location) }),
    ...(grpcStatus === undefined || backend !== undefined ? {} : { grpcStatus: Number(grpcStatus) }),
  };
}

function targetOf({ rawPath, query }: WireRequest): string {
  return query === "" ? rawPath : `${rawPath}?${query}`;
}

/** Names go without the root's dot (RFC 6066 3), addresses not at all. */
function serverNameOf({ sni, authority }: WireRequest): string {
  const name = sni ?? hostnameOf(authority);
  return name.startsWith("[") || isIP(name) > 0 ? "" : name;
}

function timeout(): Error {
  return Object.assign(new Error("no answer in time"), { code: "ETIMEDOUT" });
}
