import { describe, expect, test } from "vitest";
import type { Gateway } from "../../../src/api/gateway.ts";
import { PodIdentity } from "../../../src/controller/pod-stream/pod-identity.ts";
import type { KubernetesClient } from "../../../src/kubernetes/client.ts";

const AUDIENCE = "mergeway.dev/controller";
const CLAIM = { gateway: "infra/shared", pod: "shared-mergeway-1" };
const ACCOUNT = "system:serviceaccount:infra:shared-mergeway";
const GATEWAY = {
  kind: "Gateway",
  metadata: { namespace: "infra", name: "shared" },
  spec: { gatewayClassName: "mergeway" },
} as unknown as Gateway;

function tokenOf(sub: string): string {
  return `e30.${Buffer.from(JSON.stringify({ sub })).toString("base64url")}.signature`;
}

/** An API server that answers every review alike. */
function identity(status: object): { readonly identity: PodIdentity; readonly reviews: unknown[] } {
  const reviews: unknown[] = [];
  const client = {
    request: async ({ body }: { body: unknown }) => {
      reviews.push(body);
      return { status };
    },
  } as unknown as KubernetesClient;
  const find = (key: string): Gateway | undefined => (key === "Gateway/infra/shared" ? GATEWAY : undefined);
  return { identity: new PodIdentity(client, AUDIENCE, find), reviews };
}

const GOOD = {
  authenticated: true,
  audiences: [AUDIENCE],
  user: { username: ACCOUNT, extra: { "authentication.kubernetes.io/pod-name": [CLAIM.pod] } },
};

describe("a pod", () => {
  test("is admitted with its own token", async () => {
    const { identity: own, reviews } = identity(GOOD);
    expect(await own.mayServe(tokenOf(ACCOUNT), CLAIM)).toBe(true);
    expect(reviews).toMatchObject([{ spec: { audiences: [AUDIENCE] } }]);
  });

  test.each([
    ["a token that is not valid", { ...GOOD, authenticated: false }],
    ["a token for somebody else", { ...GOOD, audiences: ["https://kubernetes.default.svc"] }],
    ["the token of another account", { ...GOOD, user: { ...GOOD.user, username: `${ACCOUNT}-2` } }],
    ["a token that is bound to no pod", { ...GOOD, user: { username: ACCOUNT } }],
    [
      "the token of another pod",
      { ...GOOD, user: { ...GOOD.user, extra: { "authentication.kubernetes.io/pod-name": ["other"] } } },
    ],
    ["nothing that the API server knows of", {}],
  ])("is refused with %s", async (_title, status) => {
    expect(await identity(status).identity.mayServe(tokenOf(ACCOUNT), CLAIM)).toBe(false);
  });

  test.each([
    ["no token at all", "none"],
    ["a token that names another account", tokenOf("system:serviceaccount:mallory:shared-mergeway")],
  ])("is refused with %s before the API server is asked", async (_title, token) => {
    const { identity: own, reviews } = identity(GOOD);
    expect(await own.mayServe(token, CLAIM)).toBe(false);
    expect(reviews).toEqual([]);
  });

  test("of a Gateway that is not there is refused", async () => {
    const { identity: own, reviews } = identity(GOOD);
    expect(await own.mayServe(tokenOf(ACCOUNT), { ...CLAIM, gateway: "infra/other" })).toBe(false);
    expect(reviews).toEqual([]);
  });

  test.each(["infra/shared/", "infra/shared/more", "/infra/shared", "infra", ""])(
    "cannot register as %j, a name that is not exactly its Gateway's",
    async (gateway) => {
      const { identity: own, reviews } = identity(GOOD);
      expect(await own.mayServe(tokenOf(ACCOUNT), { ...CLAIM, gateway })).toBe(false);
      expect(reviews).toEqual([]);
    },
  );
});
