/**
 * Two tenants of two Gateways, one for each data plane: alice, who is served, and mallory, who may
 * write whatever she likes in her own namespace (and is believed nothing). Names of what is alice's
 * are words that occur nowhere else: where mallory can read one of them, something told her.
 */

import { Bed, ok } from "../../../tools/cluster/bed.ts";
import { CHART, ROOT, readText } from "../../../tools/cluster/chart.ts";
import { loadImage } from "../../../tools/cluster/cluster.ts";
import { loadSuiteImages } from "../../../tools/cluster/conformance.ts";
import { productImage } from "../../../tools/images/product-image.ts";
import { selfSigned } from "../../dataplanes/support/certificates.ts";

const ECHO = "registry.k8s.io/gateway-api/conformance/echo-basic:v0.2.0";
export const SYSTEM = "mergeway-system";
export const GATEWAY_API = "gateway.networking.k8s.io/v1";
/** The hostname itself is no secret: mallory has it from the DNS. */
export const HOST = "alice.example.com";
/** What only alice and the platform team know. */
export const SECRETS: RegExp = /crown|coronet|jewels|heirloom|vault|throne|\balice\b(?!\.example\.com)/;
export const MOST_LISTENERS = 300;

/** A Gateway of the namespace `infra`, and alice's set there. */
export interface Front {
  readonly plane: "embedded" | "envoy";
  readonly gateway: string;
  readonly crown: string;
}

export const EMBEDDED: Front = { plane: "embedded", gateway: "shared", crown: "crown" };
export const ENVOY: Front = { plane: "envoy", gateway: "edge", crown: "coronet" };
export const FRONTS: readonly Front[] = [EMBEDDED, ENVOY];

export function object(apiVersion: string, kind: string, at: string, rest: object): object {
  const [namespace, name] = at.split("/");
  return { apiVersion, kind, metadata: { namespace, name }, ...rest };
}

export function set(at: string, listeners: readonly object[], gateway: string = EMBEDDED.gateway): object {
  const parentRef = { namespace: "infra", name: gateway };
  return object(GATEWAY_API, "ListenerSet", at, { spec: { parentRef, listeners } });
}

export function route(at: string, spec: object): object {
  return object(GATEWAY_API, "HTTPRoute", at, { spec });
}

export function http(hostname: string | undefined, more: object = {}): object {
  return {
    name: "web",
    port: 80,
    protocol: "HTTP",
    ...(hostname === undefined ? {} : { hostname }),
    ...more,
  };
}

function namespace(name: string, labels: object = {}): object {
  return { apiVersion: "v1", kind: "Namespace", metadata: { name, labels } };
}

function keyPair(at: string, hostname: string): object {
  const { cert, key } = selfSigned([hostname]);
  return object("v1", "Secret", at, {
    type: "kubernetes.io/tls",
    stringData: { "tls.crt": cert, "tls.key": key },
  });
}

function backend(namespaceName: string, name: string): readonly object[] {
  const labels = { app: name };
  const env = Object.entries({ POD_NAME: name, NAMESPACE: namespaceName });
  return [
    object("v1", "Service", `${namespaceName}/${name}`, {
      spec: { selector: labels, ports: [{ port: 8080, targetPort: 3000 }] },
    }),
    object("apps/v1", "Deployment", `${namespaceName}/${name}`, {
      spec: {
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: {
            containers: [{ name, image: ECHO, env: env.map(([key, value]) => ({ name: key, value })) }],
          },
        },
      },
    }),
  ];
}

const ALL = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"];

/** More than most platforms give a tenant: every kind that Mergeway reads, and every status. */
const RIGHTS = [
  { apiGroups: ["gateway.networking.k8s.io"], resources: ["*"], verbs: ALL },
  { apiGroups: ["mergeway.dev"], resources: ["*"], verbs: ALL },
  {
    apiGroups: [""],
    resources: ["services", "secrets", "configmaps", "pods", "serviceaccounts", "serviceaccounts/token"],
    verbs: ALL,
  },
  { apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs: ALL },
  { apiGroups: ["", "events.k8s.io"], resources: ["events"], verbs: ["get", "list"] },
];

const TENANT = { tenant: "yes" };
const shared = ({ plane }: Front): object => ({
  spec: {
    gatewayClassName: "mergeway",
    infrastructure: {
      parametersRef: { group: "mergeway.dev", kind: "GatewayParameters", name: plane },
    },
    allowedListeners: { namespaces: { from: "Selector", selector: { matchLabels: TENANT } } },
    listeners: [
      { ...http("guard.example.com"), name: "guard" },
      {
        ...{ name: "guard-tls", port: 443, protocol: "HTTPS", hostname: "guard.example.com" },
        tls: { certificateRefs: [{ name: "guard" }] },
      },
    ],
  },
});

const WORLD: readonly object[] = [
  namespace("infra"),
  namespace("alice", TENANT),
  namespace("mallory", TENANT),
  keyPair("infra/guard", "guard.example.com"),
  object("mergeway.dev/v1alpha1", "GatewayParameters", "infra/platform", { spec: { replicas: 1 } }),
  ...FRONTS.flatMap((front) => [
    object("mergeway.dev/v1alpha1", "GatewayParameters", `infra/${front.plane}`, {
      spec: { dataPlane: front.plane },
    }),
    object(GATEWAY_API, "Gateway", `infra/${front.gateway}`, shared(front)),
  ]),
  keyPair("alice/jewels", HOST),
  // Nothing of alice's own refers to it.
  keyPair("alice/heirloom", "heirloom.example.com"),
  object("v1", "ConfigMap", "alice/jewels", { data: { "ca.crt": selfSigned([HOST]).cert } }),
  ...backend("alice", "vault"),
  ...FRONTS.map(({ gateway, crown }) => {
    const place = { name: "tls", port: 443, protocol: "HTTPS", hostname: HOST };
    const tls = { certificateRefs: [{ name: "jewels" }] };
    return set(`alice/${crown}`, [http(HOST), { ...place, tls }], gateway);
  }),
  route("alice/throne", {
    parentRefs: FRONTS.map(({ crown }) => ({ kind: "ListenerSet", name: crown })),
    rules: [{ backendRefs: [{ name: "vault", port: 8080 }] }],
  }),
  ...backend("mallory", "den"),
  object("v1", "ServiceAccount", "mallory/mallory", {}),
  object("rbac.authorization.k8s.io/v1", "Role", "mallory/tenant", { rules: RIGHTS }),
  object("rbac.authorization.k8s.io/v1", "RoleBinding", "mallory/tenant", {
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "tenant" },
    subjects: [{ kind: "ServiceAccount", name: "mallory", namespace: "mallory" }],
  }),
];

/** One replica of the controller: its log is the whole log, its metrics are all there is. */
export async function tenantsUp(name: string): Promise<Bed> {
  const bed = await Bed.up(name);
  try {
    await install(bed);
  } catch (error) {
    await bed.down();
    throw error;
  }
  return bed;
}

async function install(bed: Bed): Promise<void> {
  const { version } = JSON.parse(readText("package.json")) as { version: string };
  await loadImage(bed.cluster, await productImage(ROOT, `mergeway:${version}`));
  await loadSuiteImages(bed.cluster);
  await ok(bed.kubectl(["create", "namespace", SYSTEM]));
  const settings = `--set=replicas=1,dataPlane.type=embedded,controller.maxListenersPerGateway=${MOST_LISTENERS}`;
  const chart = ["template", "mergeway", CHART, "--include-crds", "-n", SYSTEM, settings];
  await ok(bed.kubectl(["apply", "--server-side", "-n", SYSTEM, "-f", "-"], await ok(bed.helm(chart))));
  await ok(bed.kubectl(["rollout", "status", "-n", SYSTEM, "deploy/mergeway", "--timeout=180s"]));
  const list = { apiVersion: "v1", kind: "List", items: WORLD };
  await ok(bed.kubectl(["apply", "-f", "-"], JSON.stringify(list)));
  const waits = FRONTS.flatMap(({ gateway, crown }) => [
    ["infra", `gateway/${gateway}`] as const,
    ["alice", `listenerset/${crown}`] as const,
  ]);
  for (const [at, what] of waits)
    await ok(bed.kubectl(["wait", "-n", at, "--for=condition=Programmed", what, "--timeout=180s"]));
  for (const [at, what] of [
    ["alice", "deploy/vault"],
    ["mallory", "deploy/den"],
  ] as const)
    await ok(bed.kubectl(["rollout", "status", "-n", at, what, "--timeout=180s"]));
}
