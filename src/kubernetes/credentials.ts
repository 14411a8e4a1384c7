import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { type Agent, Agent as HttpAgent } from "node:http";
import { type AgentOptions, Agent as HttpsAgent, type RequestOptions } from "node:https";
import { isIPv6 } from "node:net";
import { homedir } from "node:os";
import { join } from "node:path";

/**
 * How to reach an API server, and as whom. Asked before every request, since tokens and
 * certificates are rotated.
 */
export interface Credentials {
  readonly server: URL;
  connection(): Promise<ApiConnection>;
  /** The server has refused what `connection` gave: read it afresh. */
  forget(): void;
}

export interface ApiConnection {
  readonly headers: Readonly<Record<string, string>>;
  readonly agent: Agent;
}

export interface CredentialOptions {
  /**
   * A kubeconfig file; without it $KUBECONFIG, ~/.kube/config or the pod's service account,
   * whichever is there first.
   */
  readonly kubeconfig?: string;
  readonly context?: string;
}

const SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";
/** The kernel asks an idle peer after this time; libuv gives up ten seconds later. */
const KEEP_ALIVE_MS = 15_000;
/** How long files and exec plug-ins are not asked again. */
const REUSE_MS = 30_000;

export async function findCredentials(options: CredentialOptions): Promise<Credentials> {
  const explicit = options.kubeconfig !== undefined || options.context !== undefined;
  const host = process.env["KUBERNETES_SERVICE_HOST"];
  const hasKubeconfig =
    explicit || Boolean(process.env["KUBECONFIG"]) || existsSync(join(homedir(), ".kube", "config"));
  if (!hasKubeconfig && host) return serviceAccount(host, process.env["KUBERNETES_SERVICE_PORT"] ?? "443");
  return kubeconfig(options);
}

/**
 * A pod's own identity. Written out here because loading the whole client library costs a pod 90
 * MB.
 */
function serviceAccount(host: string, port: string): Credentials {
  const agents = new AgentCache();
  const reading = new Reused(async (): Promise<ApiConnection> => {
    const [token, ca] = await Promise.all([
      readFile(join(SERVICE_ACCOUNT, "token"), "utf8"),
      readFile(join(SERVICE_ACCOUNT, "ca.crt"), "utf8"),
    ]);
    return { headers: { authorization: `Bearer ${token.trim()}` }, agent: agents.agentFor({ ca }) };
  });
  return {
    server: new URL(`https://${isIPv6(host) ? `[${host}]` : host}:${port}`),
    connection: () => reading.get(),
    forget: () => reading.forget(),
  };
}

async function kubeconfig({ kubeconfig: file, context }: CredentialOptions): Promise<Credentials> {
  const { KubeConfig } = await import("@kubernetes/client-node");
  const config = new KubeConfig();
  if (file === undefined) config.loadFromDefault();
  else config.loadFromFile(file);
  if (context !== undefined) {
    if (config.getContextObject(context) === null)
      throw new Error(`the kubeconfig has no context ${context}`);
    config.setCurrentContext(context);
  }
  const cluster = config.getCurrentCluster();
  if (cluster === null)
    throw new Error("the kubeconfig names no cluster: set a current context, or name one");
  const agents = new AgentCache();
  const reading = new Reused(async (): Promise<ApiConnection> => {
    const options: RequestOptions = {};
    await config.applyToHTTPSOptions(options);
    const headers: Record<string, string> = {};
    for (const [name, value] of Object.entries(options.headers ?? {})) headers[name] = String(value);
    if (options.auth) headers["authorization"] = `Basic ${Buffer.from(options.auth).toString("base64")}`;
    // The library's own agent would keep a client certificate that an exec plug-in has since
    // replaced.
    const agent = cluster.proxyUrl ? (options.agent as Agent) : agents.agentFor(tlsOptions(options));
    return { headers, agent };
  });
  return {
    server: new URL(cluster.server),
    connection: () => reading.get(),
    forget: () => reading.forget(),
  };
}

function tlsOptions({ ca, cert, key, rejectUnauthorized, servername }: RequestOptions): AgentOptions {
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(rejectUnauthorized === undefined ? {} : { rejectUnauthorized }),
    ...(servername === undefined ? {} : { servername }),
  };
}

/** A server without TLS and identity: a test's, or `kubectl proxy`. */
export function plainCredentials(server: URL): Credentials {
  const agent = new HttpAgent({ keepAlive: true, keepAliveMsecs: KEEP_ALIVE_MS });
  return { server, connection: () => Promise.resolve({ headers: {}, agent }), forget: () => {} };
}

/**
 * One agent, and with it one pool of connections, for as long as the TLS identity stays the same.
 */
class AgentCache {
  #identity = "";
  #agent: HttpsAgent | undefined;

  agentFor(options: AgentOptions): HttpsAgent {
    const identity = JSON.stringify(options, (_name, value: unknown) => value ?? null);
    if (this.#agent === undefined || identity !== this.#identity) {
      // Watches of the old identity go on until they end by themselves.
      this.#agent = new HttpsAgent({ ...options, keepAlive: true, keepAliveMsecs: KEEP_ALIVE_MS });
      this.#identity = identity;
    }
    return this.#agent;
  }
}

class Reused {
  readonly #read: () => Promise<ApiConnection>;
  #current: Promise<ApiConnection> | undefined;
  #since = 0;

  constructor(read: () => Promise<ApiConnection>) {
    this.#read = read;
  }

  get(): Promise<ApiConnection> {
    if (this.#current === undefined || performance.now() - this.#since > REUSE_MS) {
      this.#since = performance.now();
      this.#current = this.#read();
      this.#current.catch(() => this.forget());
    }
    return this.#current;
  }

  forget(): void {
    this.#current = undefined;
  }
}
