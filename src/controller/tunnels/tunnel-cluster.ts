/**
 * What tunnels need written in the cluster: the token for the pods, a finalizer on the Gateway, and
 * the end of pods whose tunnel is to be deleted.
 */
import type { Gateway } from "../../api/gateway.ts";
import { ApiFailure } from "../../dataplanes/tunnel/cloudflare/api-failure.ts";
import type { Credential } from "../../dataplanes/tunnel/cloudflare/credential.ts";
import { isMadeFor, nameTaken } from "../../infra/name-collisions.ts";
import { metadata, type TunnelCredentials } from "../../infra/objects/manifest.ts";
import { infrastructureName } from "../../infra/objects/names.ts";
import type { InfrastructureCluster } from "../../infra/reconciler.ts";
import { ApiError, hasStatus } from "../../kubernetes/api-error.ts";
import { type ApiObject, objectPath } from "../../kubernetes/api-object.ts";
import { type KubernetesClient, MERGE_PATCH } from "../../kubernetes/client.ts";
import { credentialDigest } from "./desired-tunnel.ts";

export const FINALIZER = "mergeway.dev/tunnel";

export interface TunnelCluster {
  writeToken(gateway: Gateway, token: Credential): Promise<TunnelCredentials>;
  /** Adds or removes the finalizer. */
  setFinalizer(gateway: Gateway, wanted: boolean): Promise<void>;
  removePods(gateway: Gateway): Promise<void>;
}

const KEY = "token";
const SUFFIX = "-tunnel";

export class KubernetesTunnels implements TunnelCluster {
  readonly #client: KubernetesClient;
  readonly #infrastructure: InfrastructureCluster;

  constructor(client: KubernetesClient, infrastructure: InfrastructureCluster) {
    this.#client = client;
    this.#infrastructure = infrastructure;
  }

  writeToken(gateway: Gateway, token: Credential): Promise<TunnelCredentials> {
    return said("the tunnel's token cannot be written to a Secret", async () => {
      const own = metadata({ gateway, parameters: {}, ports: [] }, { suffix: SUFFIX });
      const path = objectPath({ apiVersion: "v1", plural: "secrets", namespace: own.namespace }, own.name);
      const found = await this.#find(path);
      if (found !== undefined && !isMadeFor(gateway.metadata, found.metadata)) {
        const { message } = nameTaken([{ kind: "Secret", name: own.name }]);
        throw new ApiFailure({ reason: "NameTaken", message }, { passing: false });
      }
      await this.#client.request({
        method: "PATCH",
        path,
        query: { fieldManager: "mergeway", force: found !== undefined },
        contentType: "application/apply-patch+yaml",
        body: {
          apiVersion: "v1",
          kind: "Secret",
          metadata: { ...own, ...(found === undefined ? {} : { uid: found.metadata.uid }) },
          type: "Opaque",
          data: { [KEY]: Buffer.from(token.reveal()).toString("base64") },
        },
      });
      return { secret: own.name, key: KEY, digest: credentialDigest(token) };
    });
  }

  setFinalizer(gateway: Gateway, wanted: boolean): Promise<void> {
    return said("the Gateway's finalizer cannot be written", async () => {
      const { apiVersion, metadata: known } = gateway;
      const at = { apiVersion, plural: "gateways", namespace: known.namespace ?? "" };
      const path = objectPath(at, known.name);
      const found = await this.#find(path);
      // A tunnel must not be made for it.
      if (found === undefined && wanted)
        throw new ApiError({ message: "the Gateway is gone", status: 404, code: "NotFound" });
      const finalizers = finalizersOf(found);
      // A Gateway of the same name that came later has nothing to do with it.
      if (found?.metadata.uid !== known.uid || finalizers.includes(FINALIZER) === wanted) return;
      await this.#client.request({
        method: "PATCH",
        path,
        contentType: MERGE_PATCH,
        query: { fieldManager: "mergeway" },
        body: {
          metadata: {
            // Others may have changed the list in the meantime: then it is read again.
            resourceVersion: found?.metadata.resourceVersion,
            finalizers: wanted
              ? [...finalizers, FINALIZER]
              : finalizers.filter((finalizer) => finalizer !== FINALIZER),
          },
        },
      });
    });
  }

  removePods(gateway: Gateway): Promise<void> {
    return said("the pods of the tunnel cannot be removed", async () => {
      const { namespace = "" } = gateway.metadata;
      const name = infrastructureName(gateway);
      const pods = { apiVersion: "apps/v1", kind: "Deployment", namespace, name };
      const found = await this.#infrastructure.look(pods);
      if (found !== undefined && isMadeFor(gateway.metadata, found))
        await this.#infrastructure.remove(pods, found.uid);
    });
  }

  async #find(path: string): Promise<ApiObject | undefined> {
    try {
      return await this.#client.request<ApiObject>({ path });
    } catch (error) {
      if (hasStatus(error, 404)) return undefined;
      throw error;
    }
  }
}

function finalizersOf(object: ApiObject | undefined): readonly string[] {
  return object?.metadata.finalizers ?? [];
}

/** An error of the API server as a problem of the tunnel. */
async function said<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ApiFailure) throw error;
    const { status, code } = ApiError.fromFailure(what, error);
    const answer = status === 0 ? code : `${status} ${code}`;
    throw new ApiFailure({ reason: "ClusterUnavailable", message: `${what} (${answer})` }, { passing: true });
  }
}
