/** The API server, for programs that run inside a cluster's network. */
import { type Agent, request } from "node:https";
import { findCredentials } from "../../../src/kubernetes/credentials.ts";

export interface Answer {
  readonly status: number;
  readonly body: string;
}

export class ApiServer {
  readonly #connection: { readonly headers: Record<string, string>; readonly agent: Agent };
  readonly #server: URL;

  private constructor(server: URL, headers: Record<string, string>, agent: Agent) {
    this.#server = server;
    this.#connection = { headers, agent };
  }

  static async connect(parallel: number): Promise<ApiServer> {
    const credentials = await findCredentials({});
    const { headers, agent } = await credentials.connection();
    (agent as Agent).maxSockets = parallel;
    return new ApiServer(credentials.server, headers as Record<string, string>, agent as Agent);
  }

  send(method: "GET" | "POST" | "PUT" | "DELETE", path: string, body?: object): Promise<Answer> {
    const { headers, agent } = this.#connection;
    return new Promise((resolve, reject) => {
      const sent = request(new URL(path, this.#server), {
        method,
        agent,
        timeout: 60_000,
        headers: { ...headers, "content-type": "application/json", accept: "application/json, */*" },
      });
      sent.on("timeout", () => sent.destroy(new Error(`no answer to ${method} ${path}`)));
      sent.on("error", reject);
      sent.on("response", (answer) => {
        const parts: Buffer[] = [];
        answer.on("data", (part: Buffer) => parts.push(part));
        answer.on("error", reject);
        answer.on("end", () =>
          resolve({ status: answer.statusCode ?? 0, body: Buffer.concat(parts).toString("utf8") }),
        );
      });
      sent.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }

  close(): void {
    this.#connection.agent.destroy();
  }
}
