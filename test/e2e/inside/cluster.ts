import { execFile } from "node:child_process";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { hasStatus } from "../../../src/kubernetes/api-error.ts";
import { type ApiObject, collectionPath, objectPath } from "../../../src/kubernetes/api-object.ts";
import {
  createKubernetesClient,
  type KubernetesClient,
  MERGE_PATCH,
} from "../../../src/kubernetes/client.ts";
import { builtFile, builtFolder } from "../../../tools/programs/build.ts";
import { type Eventually, eventuallyWithin } from "../../support/eventually.ts";

/** The cluster that these tests run inside of: $KUBECONFIG names it. */

export function connect(): Promise<KubernetesClient> {
  const kubeconfig = process.env["KUBECONFIG"];
  if (!kubeconfig) throw new Error("run this inside a cluster: npm run cluster -- in npx vitest run -c …");
  return createKubernetesClient({ kubeconfig });
}

/** A name that no earlier run has used: what that one left behind may still be going. */
export function unique(name: string): string {
  return `${name}-${Date.now().toString(36)}`;
}

export const GATEWAY_API = "gateway.networking.k8s.io/v1";
export const X_API = "gateway.networking.x-k8s.io/v1alpha1";

const PLURALS: Readonly<Record<string, string>> = {
  Namespace: "namespaces",
  Secret: "secrets",
  ConfigMap: "configmaps",
  Service: "services",
  GatewayClass: "gatewayclasses",
  Gateway: "gateways",
  ListenerSet: "listenersets",
  XListenerSet: "xlistenersets",
  HTTPRoute: "httproutes",
  CustomResourceDefinition: "customresourcedefinitions",
};

export interface Name {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string | undefined };
}

function placeOf({ apiVersion, kind, metadata: { namespace } }: Name): {
  apiVersion: string;
  plural: string;
  namespace: string | undefined;
} {
  return { apiVersion, plural: PLURALS[kind] ?? `${kind.toLowerCase()}s`, namespace };
}

/** A handful of verbs with the words of the tests. */
export class Cluster {
  readonly client: KubernetesClient;

  constructor(client: KubernetesClient) {
    this.client = client;
  }

  create(object: Name & Readonly<Record<string, unknown>>): Promise<ApiObject> {
    return this.client.request({ method: "POST", path: collectionPath(placeOf(object)), body: object });
  }

  get(object: Name): Promise<ApiObject> {
    return this.client.request({ path: objectPath(placeOf(object), object.metadata.name) });
  }

  patch(object: Name, patch: unknown, subresource?: string): Promise<ApiObject> {
    return this.client.request({
      method: "PATCH",
      path: objectPath(placeOf(object), object.metadata.name, subresource),
      contentType: MERGE_PATCH,
      body: patch,
      query: { fieldManager: "somebody-else" },
    });
  }

  async delete(object: Name): Promise<void> {
    try {
      await this.client.request({
        method: "DELETE",
        path: objectPath(placeOf(object), object.metadata.name),
      });
    } catch (error) {
      if (!hasStatus(error, 404)) throw error;
    }
  }

  async statusOf(object: Name): Promise<Readonly<Record<string, unknown>>> {
    return ((await this.get(object))["status"] ?? {}) as Readonly<Record<string, unknown>>;
  }
}

export const eventually: Eventually = eventuallyWithin(30, 100);

const main = fileURLToPath(new URL("../../../tools/cluster/main.ts", import.meta.url));
const run = promisify(execFile);

/** Stops, starts, pauses or resumes a program of the cluster. */
export async function component(action: "stop" | "start" | "pause" | "resume", name: string): Promise<void> {
  const cluster = basename(dirname(process.env["KUBECONFIG"] ?? ""));
  await run(process.execPath, [main, `component-${action}`, "--name", cluster, name]);
}

/** Installs CRDs: a whole set, or one file of it. */
export async function installCrds(set: string, file = ""): Promise<void> {
  const path = join(builtFolder("crds"), set, file);
  await run(builtFile("kubernetes", "kubectl"), ["apply", "--server-side", "--force-conflicts", "-f", path]);
}
