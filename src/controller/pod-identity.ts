/**
 * Who is at the other end of a stream: a pod shows a token of its ServiceAccount for our audience, the API server says whose it is, and it may have the items of
 * the one Gateway whose infrastructure that ServiceAccount belongs to.
 */
import type { Gateway } from "../api/gateway.ts";
import { keyFor } from "../api/key.ts";
import type { Resource } from "../api/resource.ts";
import { infrastructureName } from "../infra/names.ts";
import type { KubernetesClient } from "../kubernetes/client.ts";

interface TokenReview {
  readonly status?: {
    readonly authenticated?: boolean;
    readonly audiences?: readonly string[];
    readonly user?: { readonly username?: string };
  };
}

export class PodIdentity {
  readonly #client: KubernetesClient;
  readonly #audience: string;
  readonly #find: (key: string) => Resource | undefined;

  constructor(client: KubernetesClient, audience: string, find: (key: string) => Resource | undefined) {
    this.#client = client;
    this.#audience = audience;
    this.#find = find;
  }

  async mayServe(token: string, gateway: string): Promise<boolean> {
    const [namespace = "", name = ""] = gateway.split("/");
    const found = this.#find(keyFor("Gateway", namespace, name)) as Gateway | undefined;
    if (found === undefined) return false;
    const review = await this.#client.request<TokenReview>({
      method: "POST",
      path: "/apis/authentication.k8s.io/v1/tokenreviews",
      body: {
        apiVersion: "authentication.k8s.io/v1",
        kind: "TokenReview",
        spec: { token, audiences: [this.#audience] },
      },
    });
    const { authenticated, audiences, user } = review.status ?? {};
    return (
      authenticated === true &&
      audiences?.includes(this.#audience) === true &&
      user?.username === `system:serviceaccount:${namespace}:${infrastructureName(found)}`
    );
  }
}
