import type { Manifest } from "../infra/manifest.ts";
import { GATEWAY_NAME_ANNOTATION, MANAGED_BY } from "../infra/names.ts";
import type { InfrastructureCluster, ObjectName } from "../infra/reconciler.ts";
import { hasStatus } from "../kubernetes/api-error.ts";
import { collectionPath, objectPath } from "../kubernetes/api-object.ts";
import type { KubernetesClient } from "../kubernetes/client.ts";

const FIELD_MANAGER = "mergeway";
const APPLY_PATCH = "application/apply-patch+yaml";

/** The kinds that infrastructure is made of, in the order in which they are looked for. */
const KINDS: readonly { readonly apiVersion: string; readonly kind: string; readonly plural: string }[] = [
  { apiVersion: "apps/v1", kind: "Deployment", plural: "deployments" },
  { apiVersion: "v1", kind: "Service", plural: "services" },
  { apiVersion: "v1", kind: "ServiceAccount", plural: "serviceaccounts" },
  { apiVersion: "policy/v1", kind: "PodDisruptionBudget", plural: "poddisruptionbudgets" },
  { apiVersion: "autoscaling/v2", kind: "HorizontalPodAutoscaler", plural: "horizontalpodautoscalers" },
];

interface ListAnswer {
  readonly items: readonly {
    readonly metadata: {
      readonly name: string;
      readonly namespace: string;
      readonly annotations?: Readonly<Record<string, string>>;
    };
  }[];
}

/** Infrastructure in a real cluster, by server-side apply: fields that others set on our objects stay theirs. */
export class ClusterInfrastructure implements InfrastructureCluster {
  readonly #client: KubernetesClient;
  /** Empty for the whole cluster. */
  readonly #namespaces: readonly string[];

  constructor(client: KubernetesClient, namespaces: readonly string[]) {
    this.#client = client;
    this.#namespaces = namespaces;
  }

  async apply(manifest: Manifest): Promise<void> {
    const { apiVersion, kind, metadata } = manifest;
    await this.#client.request({
      method: "PATCH",
      path: pathOf({ apiVersion, kind, namespace: metadata.namespace, name: metadata.name }),
      query: { fieldManager: FIELD_MANAGER, force: true },
      contentType: APPLY_PATCH,
      body: manifest,
    });
  }

  async remove(object: ObjectName): Promise<void> {
    try {
      await this.#client.request({
        method: "DELETE",
        path: pathOf(object),
        query: { propagationPolicy: "Background" },
      });
    } catch (error) {
      if (!hasStatus(error, 404)) throw error;
    }
  }

  async listOwned(): Promise<readonly (ObjectName & { readonly gateway: string })[]> {
    const found: (ObjectName & { readonly gateway: string })[] = [];
    for (const { apiVersion, kind, plural } of KINDS) {
      for (const namespace of this.#namespaces.length === 0 ? [undefined] : this.#namespaces) {
        const at = { apiVersion, plural, ...(namespace === undefined ? {} : { namespace }) };
        const answer = await this.#client.request<ListAnswer>({
          path: collectionPath(at),
          query: { labelSelector: `app.kubernetes.io/managed-by=${MANAGED_BY}` },
        });
        for (const { metadata } of answer.items) {
          const gateway = metadata.annotations?.[GATEWAY_NAME_ANNOTATION];
          if (gateway !== undefined)
            found.push({ apiVersion, kind, namespace: metadata.namespace, name: metadata.name, gateway });
        }
      }
    }
    return found;
  }
}

function pathOf({ apiVersion, kind, namespace, name }: ObjectName): string {
  const known = KINDS.find((candidate) => candidate.apiVersion === apiVersion && candidate.kind === kind);
  if (known === undefined) throw new Error(`${apiVersion} ${kind} is not a kind of infrastructure`);
  return objectPath({ apiVersion, plural: known.plural, namespace }, name);
}
