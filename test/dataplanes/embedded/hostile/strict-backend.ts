/**
 * A backend that trusts nobody: it reads HTTP/1.1 byte by byte as RFC 9112 writes it, tolerates
 * nothing, and keeps what it saw. Whatever a proxy passes on in a form that two servers could read
 * differently shows up as a violation.
 */

import type { Socket } from "node:net";
import type { Sockets } from "../../support/sockets.ts";

export interface SeenRequest {
  readonly backend: string;
  /** Counts connections, to see which were shared. */
  readonly connection: number;
  readonly method: string;
  readonly path: string;
  readonly host: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  body: string;
  complete: boolean;
}

export class Observed {
  readonly requests: SeenRequest[] = [];
  readonly violations: string[] = [];

  /** Requests that carry this id, whole or not. */
  of(id: string): readonly SeenRequest[] {
    return this.requests.filter((request) => header(request, "x-id") === id);
  }
}

export function header(request: SeenRequest | undefined, name: string): string | undefined {
  return request?.headers.find(([known]) => known.toLowerCase() === name)?.[1];
}

/** Answers every request with what it saw, as JSON. */
export async function strictBackend(name: string, sockets: Sockets, observed: Observed): Promise<number> {
  let connections = 0;
  return await sockets.serve((socket) => new Connection(name, ++connections, socket, observed));
}

const requestLine = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+) (\/[!-~]*|\*) HTTP\/1\.1$/;
const fieldLine = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+): ?([\t -~\x80-\xff]*)$/;

class Connection {
  readonly #name: string;
  readonly #number: number;
  readonly #socket: Socket;
  readonly #observed: Observed;
  #bytes = "";
  #request: SeenRequest | undefined;
  /** What of the body is still to come: a number of bytes, or chunks. */
  #rest: number | "chunks" = 0;

  constructor(name: string, number: number, socket: Socket, observed: Observed) {
    this.#name = name;
    this.#number = number;
    this.#socket = socket;
    this.#observed = observed;
    socket.on("data", (chunk) => {
      this.#bytes += chunk.toString("latin1");
      while (this.#step());
    });
    socket.on("end", () => socket.end());
  }

  #violation(what: string): false {
    this.#observed.violations.push(`${this.#name}: ${what}: ${JSON.stringify(this.#bytes.slice(0, 200))}`);
    this.#bytes = "";
    this.#socket.destroy();
    return false;
  }

  #step(): boolean {
    if (this.#socket.destroyed) return false;
    if (this.#request === undefined) return this.#head();
    return this.#rest === "chunks" ? this.#chunk(this.#request) : this.#body(this.#request, this.#rest);
  }

  #head(): boolean {
    const end = this.#bytes.indexOf("\r\n\r\n");
    if (end < 0) return /(^|[^\r])\n|\r[^\n]/.test(this.#bytes) ? this.#violation("bare CR or LF") : false;
    const [first = "", ...lines] = this.#bytes.slice(0, end).split("\r\n");
    const line = requestLine.exec(first);
    if (line === null) return this.#violation("request line");
    const headers: [string, string][] = [];
    for (const text of lines) {
      const field = fieldLine.exec(text);
      if (field === null) return this.#violation("header line");
      headers.push([field[1] as string, (field[2] as string).trimEnd()]);
    }
    const values = (name: string): string[] =>
      headers.filter(([known]) => known.toLowerCase() === name).map(([, value]) => value);
    const hosts = values("host");
    const lengths = values("content-length");
    const codings = values("transfer-encoding");
    if (hosts.length !== 1) return this.#violation("not one Host");
    if (lengths.length > 1 || (lengths[0] !== undefined && !/^\d{1,15}$/.test(lengths[0]))) {
      return this.#violation("Content-Length");
    }
    if (codings.length > 1 || (codings[0] !== undefined && codings[0] !== "chunked")) {
      return this.#violation("Transfer-Encoding");
    }
    if (lengths.length + codings.length > 1) return this.#violation("two framings");
    this.#bytes = this.#bytes.slice(end + 4);
    this.#rest = codings.length === 1 ? "chunks" : Number(lengths[0] ?? 0);
    this.#request = {
      backend: this.#name,
      connection: this.#number,
      method: line[1] as string,
      path: line[2] as string,
      host: hosts[0] as string,
      headers,
      body: "",
      complete: false,
    };
    this.#observed.requests.push(this.#request);
    return true;
  }

  #body(request: SeenRequest, rest: number): boolean {
    const part = this.#bytes.slice(0, rest);
    request.body += part;
    this.#bytes = this.#bytes.slice(part.length);
    this.#rest = rest - part.length;
    return this.#rest === 0 ? this.#answer(request) : false;
  }

  #chunk(request: SeenRequest): boolean {
    const line = /^([0-9a-fA-F]{1,8})\r\n/.exec(this.#bytes);
    if (line === null) return /[\r\n]./s.test(this.#bytes) ? this.#violation("chunk") : false;
    const size = Number.parseInt(line[1] as string, 16);
    const start = line[0].length;
    if (size === 0) {
      const end = this.#bytes.indexOf("\r\n\r\n", start - 2);
      if (end < 0) return false;
      const trailers = this.#bytes.slice(start, end);
      if (/^(host|content-length|transfer-encoding):/im.test(trailers)) return this.#violation("trailer");
      this.#bytes = this.#bytes.slice(end + 4);
      return this.#answer(request);
    }
    if (this.#bytes.length < start + size + 2) return false;
    if (this.#bytes.slice(start + size, start + size + 2) !== "\r\n") return this.#violation("end of chunk");
    request.body += this.#bytes.slice(start, start + size);
    this.#bytes = this.#bytes.slice(start + size + 2);
    return true;
  }

  #answer(request: SeenRequest): boolean {
    request.complete = true;
    this.#request = undefined;
    const { backend, method, path, host, body } = request;
    const text = JSON.stringify({ backend, method, path, host, body, id: header(request, "x-id") });
    const head = `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n`;
    this.#socket.write(method === "HEAD" ? head : head + text, "latin1");
    return true;
  }
}
