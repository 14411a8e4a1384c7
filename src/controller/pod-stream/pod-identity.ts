/**
 * Authenticates the peer of a plan stream. A pod sends a token of its ServiceAccount with our
 * audience, and a TokenReview says whose it is. The pod may have the items of the one Gateway that
 * the ServiceAccount was made for. The token must be bound to the pod that the peer claims to be,
 * so that it ends with that pod.
 */
import type { Gateway } from "../../api/gateway.ts";
import { keyFor } from "../../api/key.ts";
import type { Resource } from "../../api/resource.ts";
import type { PodClaim } from "../../dataplanes/remote/publisher/plan-server.ts";
import { infrastructureName } from "../../infra/objects/names.ts";
import type { KubernetesClient } from "../../kubernetes/client.ts";

interface TokenReview {
  readonly status?: {
    readonly authenticated?: boolean;
    readonly audiences?: readonly string[];
    readonly user?: {
      readonly username?: string;
      readonly extra?: Readonly<Record<string, readonly string[]>>;
    };
  };
}

const POD_NAME = "authentication.kubernetes.io/pod-name";

export class PodIdentity {
  readonly #client: KubernetesClient;
  readonly #audience: string;
  readonly #find: (key: string) => Resource | undefined;

  constructor(client: KubernetesClient, audience: string, find: (key: string) => Resource | undefined) {
    this.#client = client;
    this.#audience = audience;
    this.#find = find;
  }

  async mayServe(token: string, { gateway, pod }: PodClaim): Promise<boolean> {
    const [namespace = "", name = "", ...rest] = gateway.split("/");
    // Replicas, lag and metrics are kept by this name: one Gateway must not have many.
    if (rest.length > 0) return false;
    const found = this.#find(keyFor("Gateway", namespace, name)) as Gateway | undefined;
    if (found === undefined) return false;
    const account = `system:serviceaccount:${namespace}:${infrastructureName(found)}`;
    // Without this check any peer could make the API server review invalid tokens.
    if (accountNamedBy(token) !== account) return false;
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
      user?.username === account &&
      user.extra?.[POD_NAME]?.includes(pod) === true
    );
  }
}

/**
 * The claims of a token, not verified: the API server must confirm them.
 */
function accountNamedBy(token: string): unknown {
  try {
    const [, claims = ""] = token.split(".");
    return (JSON.parse(Buffer.from(claims, "base64url").toString()) as { readonly sub?: unknown }).sub;
  } catch {
    return undefined;
  }
}
