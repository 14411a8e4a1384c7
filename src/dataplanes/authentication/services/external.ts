/**
 * External authorization over HTTP: a service of the cluster is asked whether a request may pass.
 * It gets the body only where the check says so; redirects are the client's to follow. Whatever it
 * does wrong (no answer in time, too long an answer, 1xx or 5xx) is 503 for the client.
 */
import { Agent, type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import type { ExternalAuthCheck } from "../../../plan/authentication.ts";
import type { BackendItem, Endpoint } from "../../../plan/backend.ts";
import type { CertificateItem } from "../../../plan/certificate.ts";
import { backendTlsOptions } from "../../backend-tls.ts";
import { hopByHopFields } from "../../hop-by-hop-fields.ts";
import {
  type AuthenticationRequest,
  allow,
  type Decision,
  type FieldList,
  FORBIDDEN,
  UNDECIDED,
} from "../foundation/decision.ts";
import { EndpointTurns } from "./endpoint-turns.ts";
import { CLIENT_FIELDS, isSettable, isUnframed } from "./service-fields.ts";
import { CONNECTIONS, TlsAgents } from "./tls-agents.ts";

/** Of a refusal, for the client. */
const LONGEST_BODY = 64 * 1024;
/** For a body that nobody wants. */
const LONGEST_REST_MS = 1_000;
const ALWAYS_SENT = ["authorization"];
const SET_HERE = ["x-forwarded-method", "x-forwarded-uri"];
/** Of this exchange alone, or of a body that the service does not get. */
const NEVER_SENT: ReadonlySet<string> = new Set([
  ...hopByHopFields,
  ...SET_HERE,
  "content-length",
  "expect",
  "host",
]);

/** Connections to services that are asked, shared by all checks. */
export class ExternalServices {
  readonly #clientCertificate: (gateway: string) => CertificateItem | undefined;
  readonly #plain: Agent = new Agent(CONNECTIONS);
  readonly #secure: TlsAgents = new TlsAgents();
  readonly turns: EndpointTurns = new EndpointTurns();

  constructor(clientCertificate: (gateway: string) => CertificateItem | undefined) {
    this.#clientCertificate = clientCertificate;
  }

  ask(
    backend: BackendItem,
    { address, port }: Endpoint,
    options: AskOptions,
  ): ReturnType<typeof requestHttp> {
    const common = { ...options, host: address, port, setHost: false };
    if (backend.tls === undefined) return requestHttp({ ...common, agent: this.#plain });
    const tls = backendTlsOptions(backend.tls, this.#clientCertificate(backend.gateway));
    return requestHttps({ ...common, servername: backend.tls.hostname, agent: this.#secure.of(tls) });
  }

  close(): void {
    this.#plain.destroy();
    this.#secure.close();
  }
}

interface AskOptions {
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly signal: AbortSignal;
}

interface Asked {
  readonly backend: BackendItem;
  readonly services: ExternalServices;
  readonly signal: AbortSignal;
}

export async function askService(
  check: ExternalAuthCheck,
  request: AuthenticationRequest,
  { backend, services, signal }: Asked,
): Promise<Decision> {
  const timeout = AbortSignal.any([signal, AbortSignal.timeout(check.timeoutMs)]);
  const options = { ...headOf(check, request), signal: timeout };
  for (const endpoint of services.turns.order(backend)) {
    let isOld: boolean;
    do {
      const call = services.ask(backend, endpoint, options);
      const answer = await answered(call, bodyOf(check, request));
      if (answer !== undefined) return await decisionOf(check, answer);
      if (timeout.aborted) return UNDECIDED;
      // The service may have closed it at the moment of its reuse.
      isOld = call.reusedSocket;
    } while (isOld);
  }
  return UNDECIDED;
}

function headOf(check: ExternalAuthCheck, request: AuthenticationRequest): Omit<AskOptions, "signal"> {
  const { path, requestHeaders } = check;
  const wanted = requestHeaders && new Set([...ALWAYS_SENT, ...requestHeaders]);
  const headers: Record<string, string> = { host: request.authority };
  for (const [name, value] of request.headers) {
    if (NEVER_SENT.has(name) || name.startsWith(":") || name.startsWith("x-mergeway-")) continue;
    if (wanted === undefined || wanted.has(name) || name.startsWith("x-forwarded-")) headers[name] = value;
  }
  const uri = request.query === "" ? request.path : `${request.path}?${request.query}`;
  headers["x-forwarded-method"] = request.method;
  headers["x-forwarded-uri"] = uri;
  if (path.type === "exact") return { method: "GET", path: path.value, headers };
  headers["content-length"] = String(bodyOf(check, request).length);
  return { method: request.method, path: `${path.value.replace(/\/$/, "")}${uri}`, headers };
}

function bodyOf({ maxBodyBytes }: ExternalAuthCheck, { body }: AuthenticationRequest): Uint8Array {
  return maxBodyBytes === undefined || body === undefined ? NO_BODY : body;
}

const NO_BODY: Uint8Array = new Uint8Array();

/** Undefined: there was none. */
function answered(
  call: ReturnType<typeof requestHttp>,
  body: Uint8Array,
): Promise<IncomingMessage | undefined> {
  return new Promise((resolve) => {
    call.on("response", resolve);
    call.on("error", () => resolve(undefined));
    call.on("upgrade", (_answer, socket) => {
      socket.destroy();
      resolve(undefined);
    });
    call.on("close", () => resolve(undefined));
    call.end(body);
  });
}

async function decisionOf(check: ExternalAuthCheck, answer: IncomingMessage): Promise<Decision> {
  const status = answer.statusCode ?? 0;
  const isRefusal = status >= 300 && status < 500;
  // Only of a refusal the body is wanted: without it the header decides, and nothing is waited for.
  const body = isRefusal ? await readBody(answer) : discardRest(answer);
  if (status === 200 || (status > 200 && status < 300 && check.onlyOk !== true))
    return allow(fieldsForBackend(check, answer), { answer: fieldsForClient(check, answer) });
  if (status > 200 && status < 300) return FORBIDDEN;
  if (body === undefined) return UNDECIDED;
  return {
    allowed: false,
    status,
    reason: "ExternallyRefused",
    headers: fieldsOf(answer, named(check.refusalHeaders), "each"),
    body,
  };
}

/** A short body is read to its end, so that the connection can be used again. */
function discardRest(answer: IncomingMessage): undefined {
  let size = 0;
  const end = setTimeout(() => answer.destroy(), LONGEST_REST_MS);
  answer.on("close", () => clearTimeout(end));
  answer.on("error", () => {});
  answer.on("data", (chunk: Buffer) => {
    size += chunk.length;
    if (size > LONGEST_BODY) answer.destroy();
  });
}

/** Undefined: it is too long, or broken off. */
async function readBody(answer: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of answer) {
      size += (chunk as Buffer).length;
      // Leaving the loop ends the connection.
      if (size > LONGEST_BODY) return undefined;
      chunks.push(chunk as Buffer);
    }
  } catch {
    return undefined;
  }
  return Buffer.concat(chunks);
}

/** Whether a field is wanted. */
type FieldTest = (name: string) => boolean;

function named(names: readonly string[]): FieldTest {
  const wanted = new Set(names);
  return (name) => wanted.has(name) && isUnframed(name);
}

/** What nobody has named may be anything: it sets nothing that is the gateway's word. */
function fieldsForBackend({ responseHeaders }: ExternalAuthCheck, answer: IncomingMessage): FieldList {
  return fieldsOf(answer, responseHeaders === undefined ? isSettable : named(responseHeaders), "joined");
}

function fieldsForClient({ clientHeaders }: ExternalAuthCheck, answer: IncomingMessage): FieldList {
  return fieldsOf(answer, named(clientHeaders ?? CLIENT_FIELDS), "each");
}

/** Several fields of a name are one for a backend; a client may get several cookies. */
function fieldsOf(
  { rawHeaders }: IncomingMessage,
  isWanted: FieldTest,
  several: "joined" | "each",
): FieldList {
  const found: [string, string][] = [];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]?.toLowerCase() ?? "";
    const value = rawHeaders[at + 1] ?? "";
    if (!isWanted(name)) continue;
    const known = several === "joined" ? found.find(([each]) => each === name) : undefined;
    if (known === undefined) found.push([name, value]);
    else known[1] = `${known[1]}, ${value}`;
  }
  return found;
}
