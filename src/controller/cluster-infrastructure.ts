import type { Manifest } from "../infra/manifest.ts";
import { GATEWAY_NAME_ANNOTATION, MANAGED_BY } from "../infra/names.ts";
import type { InfrastructureCluster, ObjectName } from "../infra/reconciler.ts";
import { hasStatus } from "../kubernetes/api-error.ts";
import { collectionPath, objectPath } from "../kubernetes/api-object.ts";
import type { KubernetesClient } from "../kubernetes/client.ts";

const FIELD_MANAGER = "mergeway";
/** Holds the number of pods between us and an autoscaler. */
const SCALING_MANAGER = "mergeway-scaling";
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

interface Applied {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly spec?: unknown;
}

interface DeploymentList {
  readonly items: readonly {
    readonly metadata: {
      readonly managedFields?: readonly {
        readonly manager?: string;
        readonly operation?: string;
        readonly fieldsV1?: { readonly "f:spec"?: { readonly "f:replicas"?: unknown } };
      }[];
    };
    readonly spec: { readonly replicas?: number };
  }[];
}

function replicasOf({ spec }: Applied): unknown {
  return (spec as { readonly replicas?: unknown } | undefined)?.replicas;
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
    if (manifest.kind === "Deployment" && replicasOf(manifest) === undefined)
      await this.#leaveReplicas(manifest);
    await this.#patch(manifest, FIELD_MANAGER);
  }

  /**
   * A field that we applied and apply no more is removed, and a Deployment without a number has one pod. An autoscaler shall begin with the pods that there are:
   * the number stays, in another name, until it sets its own.
   */
  async #leaveReplicas({ apiVersion, kind, metadata }: Manifest): Promise<void> {
    const { name, namespace } = metadata;
    const { items } = await this.#client.request<DeploymentList>({
      path: collectionPath({ apiVersion, plural: "deployments", namespace }),
      query: { fieldSelector: `metadata.name=${name}` },
    });
    const [found] = items;
    const isOurs = found?.metadata.managedFields?.some(
      ({ manager, operation, fieldsV1 }) =>
        manager === FIELD_MANAGER &&
        operation === "Apply" &&
        fieldsV1?.["f:spec"]?.["f:replicas"] !== undefined,
    );
    if (found === undefined || !isOurs) return;
    const { replicas } = found.spec;
    await this.#patch(
      { apiVersion, kind, metadata: { name, namespace }, spec: { replicas } },
      SCALING_MANAGER,
    );
  }

  async #patch(body: Applied, fieldManager: string): Promise<void> {
    const { apiVersion, kind, metadata } = body;
    await this.#client.request({
      method: "PATCH",
      path: pathOf({ apiVersion, kind, namespace: metadata.namespace, name: metadata.name }),
      query: { fieldManager, force: true },
      contentType: APPLY_PATCH,
      body,
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
