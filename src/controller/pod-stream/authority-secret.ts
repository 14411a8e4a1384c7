import type { AuthorityStore, KeyPair } from "../../infra/authority.ts";
import { hasStatus } from "../../kubernetes/api-error.ts";
import { collectionPath, objectPath } from "../../kubernetes/api-object.ts";
import type { KubernetesClient } from "../../kubernetes/client.ts";

const NAME = "mergeway-authority";

interface SecretAnswer {
  readonly data?: Readonly<Record<string, string>>;
}

/** The authority in a Secret of the controller's own namespace, where all replicas find it. */
export class AuthoritySecret implements AuthorityStore {
  readonly #client: KubernetesClient;
  readonly #namespace: string;

  constructor(client: KubernetesClient, namespace: string) {
    this.#client = client;
    this.#namespace = namespace;
  }

  async get(): Promise<{ readonly certificate: string; readonly key: string } | undefined> {
    try {
      const at = { apiVersion: "v1", plural: "secrets", namespace: this.#namespace };
      const { data } = await this.#client.request<SecretAnswer>({ path: objectPath(at, NAME) });
      return { certificate: decode(data?.["tls.crt"]), key: decode(data?.["tls.key"]) };
    } catch (error) {
      if (hasStatus(error, 404)) return undefined;
      throw error;
    }
  }

  async create(pair: KeyPair): Promise<boolean> {
    try {
      await this.#client.request({
        method: "POST",
        path: collectionPath({ apiVersion: "v1", plural: "secrets", namespace: this.#namespace }),
        body: {
          apiVersion: "v1",
          kind: "Secret",
          metadata: { name: NAME, labels: { "app.kubernetes.io/name": "mergeway" } },
          type: "kubernetes.io/tls",
          data: { "tls.crt": encode(pair.certificate), "tls.key": encode(pair.key) },
        },
      });
      return true;
    } catch (error) {
      if (hasStatus(error, 409)) return false;
      throw error;
    }
  }
}

function encode(text: string): string {
  return Buffer.from(text).toString("base64");
}

function decode(base64: string | undefined): string {
  return Buffer.from(base64 ?? "", "base64").toString();
}
