import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import type { IncomingHttpHeaders } from "node:http";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { insideEnvironment } from "../../../tools/cluster/cluster.ts";
import { inside } from "../../../tools/cluster/namespace.ts";
import { apiServer } from "../../../tools/cluster/network.ts";
import { pkiOf } from "../../../tools/cluster/pki.ts";
import type { Cluster } from "../../../tools/host/places.ts";

export interface WebRequest {
  readonly url: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Of a server whose certificate nobody vouches for. */
  readonly servername?: string;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface Times {
  readonly count: number;
  readonly parallel: number;
  /** How often a request is repeated that got no answer, or 429 or 5xx. */
  readonly retries?: number;
}

export interface FloodAnswer {
  /** How many answers had which status; `none` for those without an answer. */
  readonly statuses: Readonly<Record<string, number>>;
  readonly seconds: number;
}

export interface Order {
  readonly id: number;
  readonly request: WebRequest;
  readonly times?: Times;
}

interface Waiting {
  readonly resolve: (answer: never) => void;
  readonly reject: (error: Error) => void;
}

/**
 * A process inside a cluster's network that makes requests for a test, many a second: where a
 * `kubectl` for each would be too slow, or is not what is tested.
 */
export class InClusterClient {
  readonly #child: ChildProcess;
  readonly #waiting: Map<number, Waiting> = new Map();
  #orders = 0;

  constructor(cluster: Cluster) {
    const agent = fileURLToPath(new URL("in-cluster-agent.ts", import.meta.url));
    const [program, args] = inside(cluster, [process.execPath, agent, pkiOf(cluster).authority]);
    this.#child = spawn(program, [...args], {
      env: insideEnvironment(cluster),
      stdio: ["pipe", "pipe", "inherit"],
    });
    if (this.#child.stdout === null) throw new Error("no standard output");
    createInterface({ input: this.#child.stdout }).on("line", (line) => this.#take(line));
    this.#child.once("close", () => {
      for (const { reject } of this.#waiting.values()) reject(new Error("the process inside has ended"));
    });
  }

  request(request: WebRequest): Promise<Answer> {
    return this.#order({ request });
  }

  flood(times: Times, request: WebRequest): Promise<FloodAnswer> {
    return this.#order({ request, times });
  }

  /** The API server, as the bearer of a token. */
  as(token: string): ApiUser {
    return new ApiUser(this, token);
  }

  close(): void {
    this.#child.stdin?.end();
  }

  #order<A>(order: Omit<Order, "id">): Promise<A> {
    const id = this.#orders++;
    this.#child.stdin?.write(`${JSON.stringify({ id, ...order })}\n`);
    return new Promise<A>((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }

  #take(line: string): void {
    const { id, answer, error } = JSON.parse(line) as { id: number; answer?: never; error?: string };
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (answer === undefined) waiting?.reject(new Error(error));
    else waiting?.resolve(answer);
  }
}

/** Of somebody who may do everything. */
export function adminToken(cluster: Cluster): string {
  return readFileSync(pkiOf(cluster).tokens, "utf8").split(",")[0] ?? "";
}

const API = `https://${apiServer.host}:${apiServer.port}`;

export class ApiUser {
  readonly #client: InClusterClient;
  readonly #token: string;

  constructor(client: InClusterClient, token: string) {
    this.#client = client;
    this.#token = token;
  }

  get(path: string): Promise<Answer> {
    return this.#client.request(this.#request("GET", path));
  }

  create(path: string, object: object): Promise<Answer> {
    return this.#client.request(this.#request("POST", path, object));
  }

  patch(path: string, object: object, type = "application/merge-patch+json"): Promise<Answer> {
    return this.#client.request(this.#request("PATCH", path, object, type));
  }

  delete(path: string): Promise<Answer> {
    return this.#client.request(this.#request("DELETE", path));
  }

  /** `{{n}}` in path and object becomes the number of the request. */
  flood(times: Times, method: "POST" | "PATCH", path: string, object: object): Promise<FloodAnswer> {
    const type = method === "POST" ? "application/json" : "application/merge-patch+json";
    return this.#client.flood(times, this.#request(method, path, object, type));
  }

  #request(method: string, path: string, object?: object, type = "application/json"): WebRequest {
    return {
      url: `${API}${path}`,
      method,
      headers: {
        authorization: `Bearer ${this.#token}`,
        ...(object === undefined ? {} : { "content-type": type }),
      },
      ...(object === undefined ? {} : { body: JSON.stringify(object) }),
    };
  }
}
