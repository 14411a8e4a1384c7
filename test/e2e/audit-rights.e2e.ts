/**
 * Minimal rights, proven: in a cluster with one of everything that Mergeway reads and makes, every
 * right of the chart is used, and no request is refused or needs a right that is not in the table
 * (test/chart/rights.ts). What is not used here has no reason to be there. Needs `npm run build`.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { rightsUsed } from "../../tools/cluster/audit-rights.ts";
import { Bed, ok } from "../../tools/cluster/bed.ts";
import { CHART, ROOT, readText } from "../../tools/cluster/chart.ts";
import { loadImage } from "../../tools/cluster/cluster.ts";
import { auditLogOf } from "../../tools/cluster/components.ts";
import { productImage } from "../../tools/images/product-image.ts";
import { selfSigned } from "../dataplanes/support/certificates.ts";
import { type ApiUser, adminToken, InClusterClient } from "./support/in-cluster-client.ts";

const NAMESPACE = "everything";
const GROUP = "gateway.networking.k8s.io";
const API = `${GROUP}/v1`;
const WAIT = { timeout: 180_000, interval: 500 };
/** For what depends on timing: a change must fall into the moment of a write. */
const LONG_WAIT = { ...WAIT, timeout: 500_000 };

let bed: Bed;
let client: InClusterClient;
let admin: ApiUser;

function object(apiVersion: string, kind: string, name: string, rest: object): object {
  return { apiVersion, kind, metadata: { name, namespace: NAMESPACE }, ...rest };
}

/** An object that has a status, and a part of it that can be changed over and over (`{{n}}`). */
interface Changing {
  readonly path: string;
  readonly change: object;
}

const certificate = selfSigned(["a.example.com"]);
const parameters = {
  autoscaling: { minReplicas: 1, maxReplicas: 2 },
  podDisruptionBudget: { minAvailable: 1 },
};
const listener = { name: "http", port: 80, protocol: "HTTP" };
const xListener = { name: "http", port: 8080, protocol: "HTTP" };
const parentRefs = [{ name: "web" }];
const backend = { name: "web", port: 80 };

const WORLD: readonly object[] = [
  { apiVersion: "v1", kind: "Namespace", metadata: { name: NAMESPACE } },
  object("mergeway.dev/v1alpha1", "GatewayParameters", "many", { spec: parameters }),
  object("v1", "Secret", "tls", {
    type: "kubernetes.io/tls",
    stringData: { "tls.crt": certificate.cert, "tls.key": certificate.key },
  }),
  object("v1", "ConfigMap", "authority", { data: { "ca.crt": certificate.cert } }),
  object("v1", "Service", "web", { spec: { selector: { app: "web" }, ports: [{ port: 80 }] } }),
  object(API, "Gateway", "web", {
    spec: {
      gatewayClassName: "mergeway",
      infrastructure: { parametersRef: { group: "mergeway.dev", kind: "GatewayParameters", name: "many" } },
      allowedListeners: { namespaces: { from: "Same" } },
      listeners: [
        { name: "https", port: 443, protocol: "HTTPS", tls: { certificateRefs: [{ name: "tls" }] } },
        { name: "tls", port: 8443, protocol: "TLS", tls: { mode: "Passthrough" } },
        { name: "tcp", port: 9000, protocol: "TCP" },
        { name: "udp", port: 9000, protocol: "UDP" },
      ],
    },
  }),
  object(API, "ListenerSet", "set", { spec: { parentRef: { name: "web" }, listeners: [listener] } }),
  object("gateway.networking.x-k8s.io/v1alpha1", "XListenerSet", "set", {
    spec: { parentRef: { name: "web" }, listeners: [xListener] },
  }),
  ...["HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute"].map((kind) =>
    object(API, kind, "web", {
      spec: {
        parentRefs: [
          { ...parentRefs[0], sectionName: kind.slice(0, 3).toLowerCase().replace("htt", "https") },
        ],
        ...(kind === "TLSRoute" ? { hostnames: ["tls.example.com"] } : {}),
        rules: [{ backendRefs: [backend] }],
      },
    }),
  ),
  object(API, "BackendTLSPolicy", "web", {
    spec: {
      targetRefs: [{ group: "", kind: "Service", name: "web" }],
      validation: {
        hostname: "web.example.com",
        caCertificateRefs: [{ group: "", kind: "ConfigMap", name: "authority" }],
      },
    },
  }),
  object("mergeway.dev/v1alpha1", "TrafficPolicy", "web", {
    spec: {
      targetRefs: [{ kind: "Gateway", name: "web" }],
      overrides: { rateLimits: [{ requests: 1000 }] },
    },
  }),
  object("mergeway.dev/v1alpha1", "ClientPolicy", "web", {
    spec: {
      targetRefs: [{ kind: "Gateway", name: "web" }],
      defaults: { clientAddress: { forwardedFor: { trustedHops: 1 } } },
    },
  }),
  object("mergeway.dev/v1alpha1", "BackendPolicy", "web", {
    spec: {
      targetRefs: [{ kind: "Gateway", name: "web" }],
      defaults: { loadBalancing: { type: "LeastRequest" } },
    },
  }),
  object("mergeway.dev/v1alpha1", "TenantPolicy", "web", {
    spec: { targetRefs: [{ kind: "Gateway", name: "web" }], unmatchedNamespaces: "Allow", claims: "Hold" },
  }),
];

function at(plural: string, name: string, group = `${GROUP}/v1`): string {
  return `/apis/${group}/namespaces/${NAMESPACE}/${plural}/${name}`;
}

const weighted = { spec: { rules: [{ backendRefs: [{ ...backend, weight: "{{n}}" }] }] } };
/** A name that may be asked for is one of the HostnameClaims. */
const GIVEN = { hostname: "n{{n}}.example.com", to: { namespace: "elsewhere" } };
const CHANGING: readonly Changing[] = [
  { path: `/apis/${GROUP}/v1/gatewayclasses/mergeway`, change: { spec: { description: "number {{n}}" } } },
  { path: at("gateways", "web"), change: { spec: { infrastructure: { labels: { number: "n{{n}}" } } } } },
  {
    path: at("listenersets", "set"),
    change: { spec: { listeners: [{ ...listener, hostname: "n{{n}}.example.com" }] } },
  },
  {
    path: at("xlistenersets", "set", "gateway.networking.x-k8s.io/v1alpha1"),
    change: { spec: { listeners: [{ ...xListener, hostname: "n{{n}}.example.com" }] } },
  },
  ...["httproutes", "grpcroutes", "tlsroutes"].map((plural) => ({
    path: at(plural, "web"),
    change: { spec: { hostnames: ["n{{n}}.example.com"] } },
  })),
  ...["tcproutes", "udproutes"].map((plural) => ({ path: at(plural, "web"), change: weighted })),
  {
    path: at("backendtlspolicies", "web"),
    change: { spec: { validation: { hostname: "n{{n}}.example.com" } } },
  },
  ...["trafficpolicies", "clientpolicies", "backendpolicies", "tenantpolicies"].map((plural) => ({
    path: at(plural, "web", "mergeway.dev/v1alpha1"),
    change: {
      spec: {
        targetRefs: [
          { kind: "Gateway", name: "web" },
          { kind: "Gateway", name: "n{{n}}" },
        ],
        ...(plural === "tenantpolicies" ? { transfers: [GIVEN] } : {}),
      },
    },
  })),
];

beforeAll(async () => {
  bed = await Bed.up("e2e-rights", ["standard", "xlistenerset"]);
  const { version } = JSON.parse(readText("package.json")) as { version: string };
  await loadImage(bed.cluster, await productImage(ROOT, `mergeway:${version}`));
  await ok(bed.kubectl(["create", "namespace", "mergeway-system"]));
  const chart = ["template", "mergeway", CHART, "--include-crds", "-n", "mergeway-system"];
  // Two of them: one leads, the other waits for the lease.
  const manifests = await ok(bed.helm([...chart, "--set=replicas=2,dataPlane.type=embedded"]));
  await ok(bed.kubectl(["apply", "--server-side", "-n", "mergeway-system", "-f", "-"], manifests));
  await ok(bed.kubectl(["rollout", "status", "-n", "mergeway-system", "deploy/mergeway", "--timeout=240s"]));
  client = new InClusterClient(bed.cluster);
  admin = client.as(adminToken(bed.cluster));
});

afterAll(async () => {
  client?.close();
  await bed?.down();
});

async function unused(pattern: RegExp): Promise<readonly string[]> {
  return (await rightsUsed(auditLogOf(bed.cluster))).unused.filter((right) => pattern.test(right));
}

test("everything is read, and the infrastructure of a Gateway is made", async () => {
  const list = { apiVersion: "v1", kind: "List", items: WORLD };
  await ok(bed.kubectl(["apply", "-f", "-"], JSON.stringify(list)));
  await expect.poll(() => unused(/ (list|watch|create) |status$| secrets$| configmaps$/), WAIT).toEqual([]);
});

test("objects that change while their status is written are read again", async () => {
  // Numbers as weights must be numbers.
  const numbered = (change: object): object =>
    JSON.parse(JSON.stringify(change).replace('"weight":"{{n}}"', '"weight":7')) as object;
  await expect
    .poll(async () => {
      const floods = CHANGING.map(({ path, change }) => {
        const weighs = JSON.stringify(change).includes("weight");
        const more = weighs ? { metadata: { annotations: { number: "n{{n}}" } } } : {};
        return admin.flood({ count: 60, parallel: 3, retries: 10 }, "PATCH", path, {
          ...numbered(change),
          ...more,
        });
      });
      for (const { statuses } of await Promise.all(floods)) expect(statuses).toEqual({ 200: 60 });
      return unused(/ get | patch | update hostnameclaims/);
    }, LONG_WAIT)
    .toEqual([]);
});

test("what is not wanted any more is removed", async () => {
  const path = at("gatewayparameters", "many", "mergeway.dev/v1alpha1");
  const less = { spec: { replicas: 1, autoscaling: null, podDisruptionBudget: null } };
  expect(await admin.patch(path, less)).toMatchObject({ status: 200 });
  await expect.poll(() => unused(/delete (pod|horizontal)/), WAIT).toEqual([]);
  // What was made for a Gateway that is deleted goes by itself; for one that another controller has
  // now, it is taken away.
  const elsewhere = { spec: { gatewayClassName: "elsewhere" } };
  expect(await admin.patch(at("gateways", "web"), elsewhere)).toMatchObject({ status: 200 });
  await expect.poll(() => unused(/delete/), WAIT).toEqual([]);
});

test("so every right was used, none was missing, and nothing was refused", async () => {
  const { requests, ...report } = await rightsUsed(auditLogOf(bed.cluster));
  expect(report).toEqual({ refused: [], missing: [], unused: [] });
  expect(requests).toBeGreaterThan(100);
});
