/** Ordinary HTTP clients and backends on loopback. */

import { once } from "node:events";
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request,
  type ServerResponse,
} from "node:http";
import { request as requestTls } from "node:https";
import type { AddressInfo, Server, Socket } from "node:net";

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
  readonly body: string;
  readonly trailers: NodeJS.Dict<string>;
  /** What an echo backend saw. */
  readonly seen: Seen;
}

export interface Seen {
  readonly backend: string;
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly rawHeaders: readonly string[];
  readonly body: string;
}

export interface Ask {
  readonly host: string;
  readonly path?: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: string | Buffer;
  /** The address of this machine to connect from: all of 127.0.0.0/8 are. */
  readonly from?: string;
  /** Over TLS, with this name; false sends none. */
  readonly tls?: {
    readonly servername?: string;
    readonly ca: string;
    readonly cert?: string;
    readonly key?: string;
  };
}

/** One request on a connection of its own. */
export async function ask(
  port: number,
  { host, path = "/", method = "GET", headers = {}, body, from, tls }: Ask,
): Promise<Answer> {
  const options = {
    host: "127.0.0.1",
    port,
    path,
    method,
    headers: { host, ...headers },
    agent: false as const,
    ...(from === undefined ? {} : { localAddress: from }),
  };
  const sent = tls === undefined ? request(options) : requestTls({ ...options, ...tls });
  sent.end(body);
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  return await answerOf(response);
}

export async function answerOf(response: IncomingMessage): Promise<Answer> {
  const body = await textOf(response);
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    rawHeaders: response.rawHeaders,
    body,
    trailers: response.trailers,
    get seen() {
      return JSON.parse(body) as Seen;
    },
  };
}

export async function textOf(stream: AsyncIterable<Buffer | string>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString();
}

/** Servers that a test has started; `release` closes them with all their connections. */
export class Backends {
  readonly #servers: Server[] = [];
  readonly #sockets: Set<Socket> = new Set();

  /** Answers with what it has seen. */
  echo(name: string): Promise<number> {
    return this.http(async (request, response) => {
      const { method, url, headers, rawHeaders } = request;
      const body = await textOf(request).catch(() => "cut off");
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ backend: name, method, url, headers, rawHeaders, body }));
    });
  }

  http(handler: (request: IncomingMessage, response: ServerResponse) => void): Promise<number> {
    return this.listen(createServer(handler));
  }

  async listen(server: Server): Promise<number> {
    this.#servers.push(server);
    server.on("connection", (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on("error", () => {}).on("close", () => this.#sockets.delete(socket));
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return (server.address() as AddressInfo).port;
  }

  get connections(): number {
    return this.#sockets.size;
  }

  async release(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await Promise.all(this.#servers.map((server) => new Promise((resolve) => server.close(resolve))));
  }
}
