import { once } from "node:events";
import { Agent, type ClientRequest, request } from "node:http";
import { request as requestTls, Agent as TlsAgent } from "node:https";

export interface LoadTarget {
  readonly httpPort: number;
  readonly httpsPort: number;
  readonly host: string;
  readonly ca: string;
}

const CLIENTS = 4;

/**
 * Asks for one tenant without end, over HTTP and HTTPS. A connection that breaks is tried again
 * once, as clients do.
 */
export class SteadyLoad {
  readonly #target: LoadTarget;
  readonly #clear: Agent = new Agent({ keepAlive: true });
  readonly #secure: TlsAgent = new TlsAgent({ keepAlive: true });
  readonly #clients: readonly Promise<void>[];
  readonly failures: string[] = [];
  requests = 0;
  #running = true;

  constructor(target: LoadTarget) {
    this.#target = target;
    this.#clients = Array.from({ length: CLIENTS }, (_, at) => this.#run(at % 2 === 0));
  }

  async stop(): Promise<void> {
    this.#running = false;
    await Promise.all(this.#clients);
    this.#clear.destroy();
    this.#secure.destroy();
  }

  async #run(secure: boolean): Promise<void> {
    while (this.#running) {
      const outcome = await this.#once(secure)
        .catch(() => this.#once(secure))
        .catch(String);
      this.requests++;
      if (outcome !== 200) this.failures.push(String(outcome));
    }
  }

  async #once(secure: boolean): Promise<number> {
    const { httpPort, httpsPort, host, ca } = this.#target;
    const common = { host: "127.0.0.1", headers: { host } };
    const sent: ClientRequest = secure
      ? requestTls({ ...common, port: httpsPort, servername: host, ca, agent: this.#secure })
      : request({ ...common, port: httpPort, agent: this.#clear });
    sent.end();
    const [response] = await once(sent, "response");
    response.resume();
    await once(response, "end");
    return response.statusCode ?? 0;
  }
}
