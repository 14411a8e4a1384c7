/** Reads everything of a cluster that Mergeway needs, once, with the caller's rights. */
import type { Key } from "../../api/key.ts";
import type { Resource } from "../../api/resource.ts";
import { DEFAULT_CONTROLLER } from "../../engine/foundation/settings.ts";
import { ApiError } from "../../kubernetes/api-error.ts";
import { createKubernetesClient, type KubernetesClient } from "../../kubernetes/client.ts";
import type { DocumentError } from "../../sources/files/yaml/document-error.ts";
import { KubernetesSource } from "../../sources/kubernetes/source.ts";
import { type ReadingScope, readingScope } from "../../view/written/reading-scope.ts";
import { CannotRun } from "../foundation/command.ts";
import type { ClusterFlags } from "./cluster-flags.ts";

export interface ClusterContent {
  readonly server: string;
  readonly resources: ReadonlyMap<Key, Resource>;
  /** One for each kind or object that could not be read. */
  readonly warnings: readonly DocumentError[];
  /** False: it is not known which Gateways are of this controller. */
  readonly mayReadClasses: boolean;
  readonly scope: ReadingScope;
}

const REACH_MS = 10_000;
const READ_MS = 120_000;

export async function readCluster(flags: ClusterFlags, signal: AbortSignal): Promise<ClusterContent> {
  const client = await connect(flags);
  await reach(client, signal);
  const warnings = new Map<string, DocumentError>();
  let lastFailure: string | undefined;
  const note = (message: string): void => {
    const warning = asWarning(message, client.server);
    if (warning === undefined) lastFailure = message;
    else warnings.set(warning.message, warning);
  };
  const source = new KubernetesSource({
    client,
    controllerName: DEFAULT_CONTROLLER,
    skipForbidden: true,
    ...(flags.namespace.length === 0 ? {} : { namespaces: flags.namespace }),
    observer: {
      log: (level, message) => {
        if (level === "warn" || level === "error") note(message);
      },
    },
  });
  const resources = await firstBatch(source, signal);
  if (resources === undefined) {
    throw new CannotRun(
      `the cluster at ${client.server.host} could not be read in time${lastFailure === undefined ? "" : `: ${lastFailure}`}`,
      "Try again when its API server is less busy, or read fewer namespaces with --namespace.",
    );
  }
  const scope = scopeOf(flags, [...warnings.values()]);
  return {
    server: client.server.host,
    resources,
    warnings: [...warnings.values()],
    mayReadClasses: mayReadClasses(scope),
    scope,
  };
}

export function scopeOf({ namespace }: ClusterFlags, warnings: readonly DocumentError[]): ReadingScope {
  const forbidden = warnings.filter(({ rule }) => rule === "cluster/forbidden");
  const unread = forbidden.map(({ message }) => message.slice(0, message.indexOf(" ")));
  return readingScope(namespace, [...new Set(unread)].sort());
}

/** Without the classes, it is not known which Gateways are of this controller. */
export function mayReadClasses({ unread }: ReadingScope): boolean {
  return !unread.some((resource) => resource.startsWith("gatewayclasses."));
}

export async function connect({ kubeconfig, context }: ClusterFlags): Promise<KubernetesClient> {
  try {
    return await createKubernetesClient({
      ...(kubeconfig === undefined ? {} : { kubeconfig }),
      ...(context === undefined ? {} : { context }),
    });
  } catch (error) {
    throw new CannotRun(
      `the kubeconfig cannot be used: ${(error as Error).message}`,
      "`kubectl config get-contexts` lists what it holds.",
      error,
    );
  }
}

/** Fails fast when the API server does not answer: a source would retry for ever. */
export async function reach(client: KubernetesClient, signal: AbortSignal): Promise<void> {
  try {
    await client.request({ path: "/version", timeoutMs: REACH_MS, signal });
  } catch (error) {
    if (signal.aborted) throw new CannotRun("stopped");
    const { status, message } = ApiError.fromFailure("GET /version", error);
    if (status === 401) {
      throw new CannotRun(
        `the API server at ${client.server.host} does not accept the credentials of the kubeconfig`,
        "Log in again; `kubectl auth whoami` tells when it has worked.",
        error,
      );
    }
    // The right to read /version is not needed for the rest.
    if (status === 403) return;
    throw new CannotRun(
      `the API server at ${client.server.host} cannot be reached: ${message}`,
      "Check the context and the network; `kubectl version` asks the same question.",
      error,
    );
  }
}

/** Undefined when the first batch does not come in time. */
async function firstBatch(
  source: KubernetesSource,
  signal: AbortSignal,
): Promise<ReadonlyMap<Key, Resource> | undefined> {
  const done = new AbortController();
  const timeout = setTimeout(() => done.abort(), READ_MS);
  let read: Map<Key, Resource> | undefined;
  const take = (changes: readonly { readonly key: Key; readonly resource: Resource | undefined }[]): void => {
    if (read !== undefined) return;
    read = new Map();
    for (const { key, resource } of changes) if (resource !== undefined) read.set(key, resource);
    done.abort();
  };
  try {
    await source.run(take, AbortSignal.any([signal, done.signal]));
  } finally {
    clearTimeout(timeout);
  }
  if (signal.aborted) throw new CannotRun("stopped");
  return read;
}

/**
 * The API server's message about a missing right: `x.group is forbidden: User "u" cannot list
 * resource "x" in API group "group" …`.
 */
const FORBIDDEN = /403 (\S+) is forbidden: (User .*)$/s;

/** Undefined for a failure that the source retries: its first batch waits until that succeeds. */
export function asWarning(text: string, server: URL): DocumentError | undefined {
  const place = { file: server.host, line: 1, column: 1 };
  const [, resource, right] = FORBIDDEN.exec(text) ?? [];
  if (resource !== undefined) {
    return {
      ...place,
      rule: "cluster/forbidden",
      message: `${resource} may not be read and counts as absent: ${right}`,
      remedy:
        "Ask for the right to get, list and watch it, or read only namespaces where you have it, with --namespace.",
    };
  }
  if (!text.includes(" is left out")) return undefined;
  return {
    ...place,
    rule: "cluster/left-out",
    message: text,
    remedy: "Its CRD may be of another version than Mergeway knows.",
  };
}
