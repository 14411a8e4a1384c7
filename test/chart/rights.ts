/**
 * Every right of the controller, with its reason: the table that the chart, the API server's own
 * opinion of the account, and the audit log of a run are held against. A right that is in none of
 * them is missing, one that is not used is too much.
 */

/**
 * `cluster`: belongs to no namespace. `watched`: in each watched namespace, or everywhere. `own`:
 * in the controller's own namespace.
 */
export type RightScope = "cluster" | "watched" | "own";

interface RightRow {
  readonly scope: RightScope;
  readonly group: string;
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  /** The only object that the right is for. */
  readonly name?: string;
  /** Checked by admission on the way of another request: never a request of its own. */
  readonly unseen?: true;
  readonly why: string;
}

export interface Right {
  readonly scope: RightScope;
  readonly group: string;
  readonly resource: string;
  readonly verb: string;
  readonly name?: string;
  readonly unseen?: true;
}

const GATEWAY = "gateway.networking.k8s.io";
const EXPERIMENTAL = "gateway.networking.x-k8s.io";
const ROUTES = ["httproutes", "grpcroutes", "tlsroutes", "tcproutes", "udproutes"];
const WITH_STATUS = ["gateways", "listenersets", ...ROUTES, "backendtlspolicies"];
const OWN_POLICIES = ["trafficpolicies", "clientpolicies", "backendpolicies", "tenantpolicies"];
const READ = ["list", "watch"];
/**
 * Also one by one: to see what somebody else has just written, or the content of what is listed by
 * metadata.
 */
const REREAD = ["get", ...READ];
const MAKE = ["list", "create", "patch", "delete"];

export const RIGHTS: readonly RightRow[] = [
  {
    scope: "cluster",
    group: GATEWAY,
    resources: ["gatewayclasses"],
    verbs: REREAD,
    why: "which classes are ours",
  },
  {
    scope: "cluster",
    group: GATEWAY,
    resources: ["gatewayclasses/status"],
    verbs: ["patch"],
    why: "Accepted",
  },
  { scope: "cluster", group: "", resources: ["namespaces"], verbs: READ, why: "namespace selectors" },
  {
    scope: "cluster",
    group: "apiextensions.k8s.io",
    resources: ["customresourcedefinitions"],
    verbs: READ,
    why: "kinds that appear later, SupportedVersion",
  },
  {
    scope: "cluster",
    group: "authentication.k8s.io",
    resources: ["tokenreviews"],
    verbs: ["create"],
    why: "whose pod is at the other end of a stream",
  },
  {
    scope: "watched",
    group: GATEWAY,
    resources: WITH_STATUS,
    verbs: REREAD,
    why: "what is to be served",
  },
  {
    scope: "watched",
    group: GATEWAY,
    resources: ["referencegrants"],
    verbs: READ,
    why: "who may refer to what",
  },
  {
    scope: "watched",
    group: EXPERIMENTAL,
    resources: ["xlistenersets"],
    verbs: REREAD,
    why: "the older ListenerSet",
  },
  {
    scope: "watched",
    group: "mergeway.dev",
    resources: ["gatewayparameters"],
    verbs: READ,
    why: "how to serve it",
  },
  {
    scope: "watched",
    group: "mergeway.dev",
    resources: OWN_POLICIES,
    verbs: REREAD,
    why: "what requests and clients must meet",
  },
  {
    scope: "watched",
    group: "mergeway.dev",
    resources: ["hostnameclaims"],
    verbs: [...READ, "create", "update", "delete"],
    why: "claims that admission holds",
  },
  {
    scope: "watched",
    group: "",
    resources: ["secrets", "configmaps"],
    verbs: REREAD,
    why: "certificates and authorities that something refers to",
  },
  {
    scope: "watched",
    group: "",
    resources: ["services"],
    verbs: READ,
    why: "backends, and addresses of Gateways",
  },
  {
    scope: "watched",
    group: "discovery.k8s.io",
    resources: ["endpointslices"],
    verbs: READ,
    why: "backends",
  },
  {
    scope: "watched",
    group: GATEWAY,
    resources: WITH_STATUS.map((resource) => `${resource}/status`),
    verbs: ["patch"],
    why: "statuses",
  },
  {
    scope: "watched",
    group: EXPERIMENTAL,
    resources: ["xlistenersets/status"],
    verbs: ["patch"],
    why: "statuses",
  },
  {
    scope: "watched",
    group: "mergeway.dev",
    resources: OWN_POLICIES.map((resource) => `${resource}/status`),
    verbs: ["patch"],
    why: "statuses",
  },
  {
    scope: "watched",
    group: "events.k8s.io",
    resources: ["events"],
    verbs: ["create"],
    why: "what a person sees with kubectl describe",
  },
  { scope: "watched", group: "apps", resources: ["deployments"], verbs: MAKE, why: "pods of a Gateway" },
  {
    scope: "watched",
    group: "",
    resources: ["services", "serviceaccounts"],
    verbs: MAKE,
    why: "addresses and identity of a Gateway",
  },
  {
    scope: "watched",
    group: "policy",
    resources: ["poddisruptionbudgets"],
    verbs: MAKE,
    why: "pods of a Gateway",
  },
  {
    scope: "watched",
    group: "autoscaling",
    resources: ["horizontalpodautoscalers"],
    verbs: MAKE,
    why: "pods of a Gateway",
  },
  {
    scope: "watched",
    group: GATEWAY,
    resources: ["gateways/finalizers"],
    verbs: ["update"],
    unseen: true,
    why: "admission plugin OwnerReferencesPermissionEnforcement",
  },
  {
    scope: "own",
    group: "coordination.k8s.io",
    resources: ["leases"],
    verbs: ["create"],
    why: "leader election",
  },
  {
    scope: "own",
    group: "coordination.k8s.io",
    resources: ["leases"],
    verbs: ["get", "watch", "update"],
    name: "mergeway",
    why: "leader election",
  },
  { scope: "own", group: "", resources: ["secrets"], verbs: ["create"], why: "the authority of the stream" },
  {
    scope: "own",
    group: "",
    resources: ["secrets"],
    verbs: ["get"],
    name: "mergeway-authority",
    why: "the authority of the stream",
  },
];

export function expandRights(rows: readonly RightRow[] = RIGHTS): readonly Right[] {
  return rows.flatMap(({ scope, group, resources, verbs, name, unseen }) =>
    resources.flatMap((resource) =>
      verbs.map((verb) => ({
        scope,
        group,
        resource,
        verb,
        ...(name === undefined ? {} : { name }),
        ...(unseen === undefined ? {} : { unseen }),
      })),
    ),
  );
}

/**
 * One line for a right, for comparing and for reading: `watched get secrets`, `own get
 * leases.coordination.k8s.io mergeway`.
 */
export function rightText({ scope, group, resource, verb, name }: Right): string {
  const [plural = "", subresource] = resource.split("/");
  const full = `${plural}${group === "" ? "" : `.${group}`}${subresource === undefined ? "" : `/${subresource}`}`;
  return [scope, verb, full, ...(name === undefined ? [] : [name])].join(" ");
}

export interface PolicyRule {
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

/** The rights that the rules of a role give. */
export function rightsOfRules(scope: RightScope, rules: readonly PolicyRule[]): readonly Right[] {
  return rules.flatMap(({ apiGroups = [], resources = [], resourceNames = [undefined], verbs }) =>
    apiGroups.flatMap((group) =>
      resources.flatMap((resource) =>
        resourceNames.flatMap((name) =>
          verbs.map((verb) => ({ scope, group, resource, verb, ...(name === undefined ? {} : { name }) })),
        ),
      ),
    ),
  );
}
