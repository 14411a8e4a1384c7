import type { Manifest } from "../infra/objects/manifest.ts";
import { GATEWAY_NAME_ANNOTATION, MANAGED_BY } from "../infra/objects/names.ts";
import type { FoundObject, InfrastructureCluster, ObjectName } from "../infra/reconciler.ts";
import { hasStatus } from "../kubernetes/api-error.ts";
import { collectionPath, objectPath } from "../kubernetes/api-object.ts";
import type { KubernetesClient } from "../kubernetes/client.ts";

const FIELD_MANAGER = "mergeway";
/** The field manager of `replicas` until an autoscaler sets it. */
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
    readonly metadata: FoundObject & { readonly name: string; readonly namespace: string };
  }[];
}

interface Applied {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace: string; readonly uid?: string };
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

/**
 * Infrastructure in a real cluster, by server-side apply: fields that others set on our objects
 * stay theirs.
 */
export class ClusterInfrastructure implements InfrastructureCluster {
  readonly #client: KubernetesClient;
  /** Empty for the whole cluster. */
  readonly #namespaces: readonly string[];

  constructor(client: KubernetesClient, namespaces: readonly string[]) {
    this.#client = client;
    this.#namespaces = namespaces;
  }

  /** By a list of one: what must be listed anyway needs no further right. */
  async look({ apiVersion, kind, namespace, name }: ObjectName): Promise<FoundObject | undefined> {
    const { items } = await this.#client.request<ListAnswer>({
      path: collectionPath({ apiVersion, plural: pluralOf(apiVersion, kind), namespace }),
      query: { fieldSelector: `metadata.name=${name}` },
    });
    return items[0]?.metadata;
  }

  async apply(manifest: Manifest, uid: string | undefined): Promise<void> {
    // Another program may have created the object meanwhile: do not overrule its fields.
    if (uid === undefined) return this.#patch(manifest, { manager: FIELD_MANAGER, force: false });
    if (manifest.kind === "Deployment" && replicasOf(manifest) === undefined)
      await this.#leaveReplicas(manifest);
    const metadata = { ...manifest.metadata, uid };
    await this.#patch({ ...manifest, metadata }, { manager: FIELD_MANAGER, force: true });
  }

  /**
   * Server-side apply removes a field that we no longer apply, and a Deployment without `replicas`
   * has one pod. An autoscaler should start with the current number: it is applied by another field
   * manager until the autoscaler sets its own.
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
      { manager: SCALING_MANAGER, force: true },
    );
  }

  async #patch(
    body: Applied,
    { manager, force }: { readonly manager: string; readonly force: boolean },
  ): Promise<void> {
    const { apiVersion, kind, metadata } = body;
    await this.#client.request({
      method: "PATCH",
      path: pathOf({ apiVersion, kind, namespace: metadata.namespace, name: metadata.name }),
      query: { fieldManager: manager, force },
      contentType: APPLY_PATCH,
      body,
    });
  }

  async remove(object: ObjectName, uid: string): Promise<void> {
    try {
      await this.#client.request({
        method: "DELETE",
        path: pathOf(object),
        body: {
          apiVersion: "v1",
          kind: "DeleteOptions",
          propagationPolicy: "Background",
          preconditions: { uid },
        },
      });
    } catch (error) {
      // The object is gone, or there is another one of its name.
      if (!hasStatus(error, 404) && !hasStatus(error, 409)) throw error;
    }
  }

  async listOwned(): ReturnType<InfrastructureCluster["listOwned"]> {
    const found: Awaited<ReturnType<InfrastructureCluster["listOwned"]>>[number][] = [];
    for (const { apiVersion, kind, plural } of KINDS) {
      for (const namespace of this.#namespaces.length === 0 ? [undefined] : this.#namespaces) {
        const at = { apiVersion, plural, ...(namespace === undefined ? {} : { namespace }) };
        const answer = await this.#client.request<ListAnswer>({
          path: collectionPath(at),
          query: { labelSelector: `app.kubernetes.io/managed-by=${MANAGED_BY}` },
        });
        for (const { metadata } of answer.items) {
          const gateway = metadata.annotations?.[GATEWAY_NAME_ANNOTATION];
          const { uid, namespace: home, name } = metadata;
          if (gateway !== undefined) found.push({ apiVersion, kind, namespace: home, name, uid, gateway });
        }
      }
    }
    return found;
  }
}

function pathOf({ apiVersion, kind, namespace, name }: ObjectName): string {
  return objectPath({ apiVersion, plural: pluralOf(apiVersion, kind), namespace }, name);
}

function pluralOf(apiVersion: string, kind: string): string {
  const known = KINDS.find((candidate) => candidate.apiVersion === apiVersion && candidate.kind === kind);
  if (known === undefined) throw new Error(`${apiVersion} ${kind} is not a kind of infrastructure`);
  return known.plural;
}
