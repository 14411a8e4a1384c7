/** Everything that Mergeway reads of a cluster, once, with the rights of whoever asks. */
import type { Key } from "../../api/key.ts";
import type { Resource } from "../../api/resource.ts";
import { DEFAULT_CONTROLLER } from "../../engine/foundation/settings.ts";
import { ApiError } from "../../kubernetes/api-error.ts";
import { createKubernetesClient, type KubernetesClient } from "../../kubernetes/client.ts";
import type { DocumentError } from "../../sources/files/yaml/document-error.ts";
import { KubernetesSource } from "../../sources/kubernetes/source.ts";
import { CannotRun } from "../foundation/command.ts";
import type { ClusterFlags } from "./cluster-flags.ts";

export interface ClusterContent {
  readonly server: string;
  readonly resources: ReadonlyMap<Key, Resource>;
  /** What could not be read, and which right is missing. */
  readonly warnings: readonly DocumentError[];
  /** Without them nobody can tell whose a Gateway is. */
  readonly mayReadClasses: boolean;
}

const REACH_MS = 10_000;
const READ_MS = 120_000;

export async function readCluster(flags: ClusterFlags, signal: AbortSignal): Promise<ClusterContent> {
  const client = await connect(flags);
  await reach(client, signal);
  const complaints = new Map<string, DocumentError>();
  let trouble: string | undefined;
  const note = (message: string): void => {
    const complaint = asComplaint(message, client.server);
    if (complaint === undefined) trouble = message;
    else complaints.set(complaint.message, complaint);
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
      `the cluster at ${client.server.host} could not be read in time${trouble === undefined ? "" : `: ${trouble}`}`,
      "Try again when its API server is less busy, or read fewer namespaces with --namespace.",
    );
  }
  const warnings = [...complaints.values()];
  const mayReadClasses = !warnings.some(({ message }) => message.startsWith("gatewayclasses."));
  return { server: client.server.host, resources, warnings, mayReadClasses };
}

async function connect({ kubeconfig, context }: ClusterFlags): Promise<KubernetesClient> {
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

/** Asked once before anything else: a source goes on trying for ever, a person wants to know. */
async function reach(client: KubernetesClient, signal: AbortSignal): Promise<void> {
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
    // Whoever may not ask for the version may still read what matters.
    if (status === 403) return;
    throw new CannotRun(
      `the API server at ${client.server.host} cannot be reached: ${message}`,
      "Check the context and the network; `kubectl version` asks the same question.",
      error,
    );
  }
}

/** Undefined when it does not come in time. */
async function firstBatch(
  source: KubernetesSource,
  signal: AbortSignal,
): Promise<ReadonlyMap<Key, Resource> | undefined> {
  const enough = new AbortController();
  const late = setTimeout(() => enough.abort(), READ_MS);
  let read: Map<Key, Resource> | undefined;
  const take = (changes: readonly { readonly key: Key; readonly resource: Resource | undefined }[]): void => {
    if (read !== undefined) return;
    read = new Map();
    for (const { key, resource } of changes) if (resource !== undefined) read.set(key, resource);
    enough.abort();
  };
  try {
    await source.run(take, AbortSignal.any([signal, enough.signal]));
  } finally {
    clearTimeout(late);
  }
  if (signal.aborted) throw new CannotRun("stopped");
  return read;
}

/**
 * What the API server says of a missing right: `x.group is forbidden: User "u" cannot list resource
 * "x" in API group "group" …`.
 */
const FORBIDDEN = /403 (\S+) is forbidden: (User .*)$/s;

/**
 * Undefined for trouble that passes: a source tries again, and its first batch waits until that has
 * worked.
 */
function asComplaint(text: string, server: URL): DocumentError | undefined {
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
