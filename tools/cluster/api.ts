// The few calls to the API server that the bed itself makes, from inside the cluster's network.

import { readFileSync } from "node:fs";
import { Agent, type RequestOptions, request } from "node:https";
import { createInterface } from "node:readline";
import type { Cluster } from "../host/places.ts";
import { apiServer } from "./network.ts";
import { pkiOf } from "./pki.ts";

export class ApiFailure extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(`${status}: ${message}`);
    this.status = status;
  }
}

interface Body {
  readonly type: string;
  readonly content: unknown;
}

export class Api {
  readonly #options: RequestOptions;

  constructor(cluster: Cluster) {
    const pki = pkiOf(cluster);
    const token = readFileSync(pki.tokens, "utf8").split(",")[0];
    this.#options = {
      ...apiServer,
      agent: new Agent({ keepAlive: true, ca: readFileSync(pki.authority) }),
      headers: { authorization: `Bearer ${token}`, accept: "application/json" },
      timeout: 10_000,
    };
  }

  get<T>(path: string): Promise<T> {
    return this.#call<T>("GET", path);
  }

  patchMerge(path: string, content: unknown): Promise<unknown> {
    return this.#call("PATCH", path, { type: "application/merge-patch+json", content });
  }

  create(path: string, content: unknown): Promise<unknown> {
    return this.#call("POST", path, { type: "application/json", content });
  }

  /** Whether a path answers 200; false while the server is not there at all. */
  async answers(path: string): Promise<boolean> {
    try {
      await this.#call("GET", path);
      return true;
    } catch {
      return false;
    }
  }

  /** Gives the events of a watch until the server ends it. */
  async *watch<T>(path: string): AsyncGenerator<T> {
    const response = await this.#open("GET", path, { ...this.#options, timeout: 0 });
    for await (const line of createInterface({ input: response })) {
      yield JSON.parse(line) as T;
    }
  }

  async #call<T>(method: string, path: string, body?: Body): Promise<T> {
    const response = await this.#open(method, path, this.#options, body);
    const text = await textOf(response);
    return (response.headers["content-type"]?.includes("json") === true ? JSON.parse(text) : text) as T;
  }

  #open(
    method: string,
    path: string,
    options: RequestOptions,
    body?: Body,
  ): Promise<import("node:http").IncomingMessage> {
    return new Promise((done, fail) => {
      const type = body === undefined ? {} : { "content-type": body.type };
      const headers = { ...(options.headers as Record<string, string>), ...type };
      const call = request({ ...options, method, path, headers }, (response) => {
        const status = response.statusCode ?? 0;
        if (status >= 200 && status < 300) {
          done(response);
        } else {
          textOf(response).then((text) => fail(new ApiFailure(status, text.slice(0, 500))), fail);
        }
      });
      call.on("error", fail);
      call.on("timeout", () => call.destroy(new Error(`${method} ${path} timed out`)));
      call.end(body === undefined ? undefined : JSON.stringify(body.content));
    });
  }
}

async function textOf(response: AsyncIterable<Buffer>): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of response) {
    parts.push(part);
  }
  return Buffer.concat(parts).toString("utf8");
}
