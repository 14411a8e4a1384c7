/**
 * TenantPolicies at admission: one ValidatingAdmissionPolicy of fixed text, whose parameter is the
 * TenantPolicy itself. There is nothing to keep up to date when rules change.
 *
 * It decides as src/engine/tenancy/tenant-rights.ts does, where the API server can know the answer.
 * It sees one object at a time, so these stay with the engine: quotas, ports that are yet to be
 * assigned, routes to listeners in ListenerSets of the platform, and what a route without a
 * hostname, or with a wildcard, gets from the listener. Such a route is refused only if no
 * listener could give it anything that is allowed.
 *
 * An object that is written again with the same spec passes: its finalizers, for instance, must
 * go although rules have become stricter. The engine refuses what it asks for all the same.
 */

import { EXPERIMENTAL_GROUP, GATEWAY_GROUP } from "../../api/resource.ts";
import { ATTACH_TO_ANNOTATION } from "../../engine/listeners/owners.ts";
import { type FailurePolicy, OPERATIONS, policyBinding, validatingPolicy } from "./validating-policy.ts";

const NAME = "mergeway-tenant-policy";

/** Every kind that asks for hostnames or ports, in every version that is served. */
const RESOURCE_RULES = [
  {
    apiGroups: [GATEWAY_GROUP],
    resources: [
      "gateways",
      "listenersets",
      "httproutes",
      "grpcroutes",
      "tlsroutes",
      "tcproutes",
      "udproutes",
    ],
    ...OPERATIONS,
  },
  { apiGroups: [EXPERIMENTAL_GROUP], resources: ["xlistenersets"], ...OPERATIONS },
];

/** `src/plan/hostname.ts`: every name of `narrow` is one of `wide`. */
function covers(wide: string, narrow: string): string {
  return `${wide} == '' || ${wide} == ${narrow} || (${wide}.startsWith('*.') && ${narrow}.endsWith(${wide}.substring(1)))`;
}

function overlap(a: string, b: string): string {
  return `${covers(a, b)} || ${covers(b, a)}`;
}

const LABEL = "[a-z0-9_]([-a-z0-9_]*[a-z0-9_])?";
const IS_PATTERN = `size(name) <= 253 && name.matches('^([*][.])?${LABEL}([.]${LABEL})*$')`;

/**
 * A pattern with its placeholders filled in. Everything behind a `{` up to the `}` is one; a space
 * stands for a value that is not known, so that the whole is no pattern.
 */
const RESOLVED = `text.split('{').map(part, !part.contains('}') ? part : (
  part.startsWith('namespace}') ? variables.home
  : part.substring(6, part.indexOf('}')) in variables.labels && variables.labels[part.substring(6, part.indexOf('}'))] != ''
  ? variables.labels[part.substring(6, part.indexOf('}'))].lowerAscii() : ' '
) + part.substring(part.indexOf('}') + 1)).join('')`;

const SELECTS = `(!has(rule.namespaceSelector.matchLabels) || rule.namespaceSelector.matchLabels.all(key,
  key in variables.labels && variables.labels[key] == rule.namespaceSelector.matchLabels[key]))
&& (!has(rule.namespaceSelector.matchExpressions) || rule.namespaceSelector.matchExpressions.all(each,
  each.operator == 'Exists' ? each.key in variables.labels
  : each.operator == 'DoesNotExist' ? !(each.key in variables.labels)
  : (each.operator == 'NotIn') != (each.key in variables.labels && has(each.values) && variables.labels[each.key] in each.values)))`;

const IS_GATEWAY = `each.kind == 'Gateway' && each.group == '${GATEWAY_GROUP}'`;
const REFERENCE = "(has(each.namespace) ? each.namespace : request.namespace) + '/' + each.name";

/** `namespace/name` of the Gateways that the object, or `oldObject`, names as parents. */
export function parentsOf(object: "object" | "oldObject"): string {
  return `${object}.kind == 'Gateway' ? (
  has(${object}.spec.infrastructure) && has(${object}.spec.infrastructure.attachTo)
  ? [${object}.spec.infrastructure.attachTo].filter(each, ${IS_GATEWAY}).map(each, ${REFERENCE})
  : has(${object}.metadata.annotations) && '${ATTACH_TO_ANNOTATION}' in ${object}.metadata.annotations
  ? [${object}.metadata.annotations['${ATTACH_TO_ANNOTATION}'].split('/')].map(parts,
    size(parts) > 1 ? parts[0] + '/' + parts[1] : request.namespace + '/' + parts[0])
  : []
) : has(${object}.spec.parentRef)
? [${object}.spec.parentRef].filter(each, ${IS_GATEWAY}).map(each, ${REFERENCE})
: has(${object}.spec.parentRefs)
? ${object}.spec.parentRefs.filter(each, ${IS_GATEWAY}).map(each, ${REFERENCE})
: []`;
}

/** Of two policies the younger one does not count, which the controller says in its status. */
const NAMES_TARGET = `(${parentsOf("object")}).exists(parent, params.spec.targetRefs.exists(target,
  parent == params.metadata.namespace + '/' + target.name
  && !(has(params.status) && has(params.status.ancestors) && params.status.ancestors.exists(ancestor,
    ancestor.ancestorRef.name == target.name && has(ancestor.conditions) && ancestor.conditions.exists(condition,
      condition.type == 'Accepted' && condition.status == 'False' && condition.reason == 'Conflicted')))))`;

/** In the order in which they build on each other; each is computed when it is first needed. */
const VARIABLES: Readonly<Record<string, string>> = {
  home: "request.namespace",
  labels: "has(namespaceObject.metadata.labels) ? namespaceObject.metadata.labels : {}",
  selecting: `has(params.spec.rules) ? params.spec.rules.filter(rule, ${SELECTS}) : []`,
  isRoute: "object.kind.endsWith('Route')",
  isDenied: "size(variables.selecting) == 0 && params.spec.unmatchedNamespaces != 'Allow'",
  protocols:
    "size(variables.selecting) > 0 && has(variables.selecting[0].protocols) ? variables.selecting[0].protocols : ['HTTP', 'HTTPS', 'TLS', 'TCP', 'UDP']",
  ports:
    "size(variables.selecting) > 0 && has(variables.selecting[0].ports) ? variables.selecting[0].ports : [{'port': 0, 'endPort': 65535}]",
  allow: `size(variables.selecting) == 0 ? (variables.isDenied ? [] : ['']) : variables.selecting[0].hostnames.allow
.map(text, text == '*' ? '' : ${RESOLVED}).filter(name, name == '' || (${IS_PATTERN}))`,
  deny: `size(variables.selecting) == 0 || !has(variables.selecting[0].hostnames.deny) ? [] : variables.selecting[0].hostnames.deny
.map(text, text == '*' ? '' : ${RESOLVED}).map(name, ${IS_PATTERN} ? name : '')`,
  reserved: "has(params.spec.reservedHostnames) ? params.spec.reservedHostnames : []",
  listeners: "!variables.isRoute && has(object.spec.listeners) ? object.spec.listeners : []",
  hostnames: `variables.isRoute
? (object.kind in ['TCPRoute', 'UDPRoute'] ? [] : has(object.spec.hostnames) && size(object.spec.hostnames) > 0 ? object.spec.hostnames : [''])
: variables.listeners.filter(each, each.protocol in ['HTTP', 'HTTPS', 'TLS']).map(each, has(each.hostname) ? each.hostname : '')`,
  // Each expression has a budget of its own, so what may be long is not nested within another one.
  reservedWide: "variables.reserved.filter(name, name.startsWith('*.'))",
  refusedHostnames: `variables.isRoute ? variables.hostnames.filter(name,
  !variables.allow.exists(wide, ${overlap("wide", "name")}) || variables.deny.exists(wide, ${covers("wide", "name")}))
: variables.hostnames.filter(name,
  !variables.allow.exists(wide, ${covers("wide", "name")}) || variables.deny.exists(wide, ${overlap("wide", "name")}))`,
  reservedHostnames: "variables.hostnames.filter(name, name in variables.reserved)",
  belowReserved:
    "variables.hostnames.filter(name, variables.reservedWide.exists(wide, name.endsWith(wide.substring(1))))",
  aboveReserved: `variables.isRoute ? [] : variables.hostnames.filter(name, name == '' ? size(variables.reserved) > 0
: name.startsWith('*.') && variables.reserved.exists(each, each.endsWith(name.substring(1))))`,
  askedProtocols:
    "object.kind == 'TCPRoute' ? ['TCP'] : object.kind == 'UDPRoute' ? ['UDP'] : variables.listeners.map(each, each.protocol)",
  refusedProtocols: `variables.askedProtocols.filter(name, name in ['HTTP', 'HTTPS', 'TLS', 'TCP', 'UDP'] && !(name in variables.protocols))`,
  refusedPorts: `variables.listeners.filter(each, has(each.port) && each.port != 0
  && each.protocol in ['HTTP', 'HTTPS', 'TLS', 'TCP', 'UDP'] && !variables.ports.exists(range,
    each.port == range.port || (has(range.endPort) && each.port >= range.port && each.port <= range.endPort))).map(each, string(each.port))`,
};

const REFUSED = "' is not allowed to namespace ' + variables.home + ' by the TenantPolicy of the Gateway'";

/**
 * Reasons are those of the conditions that the engine writes. Messages use nothing of the rules:
 * the API server computes them anew, and also when nothing is refused.
 */
const VALIDATIONS: readonly { readonly holds: string; readonly message: string }[] = [
  {
    holds: "!variables.isDenied",
    message:
      "'NamespaceNotAllowed: namespace ' + variables.home + ' may have nothing at the Gateway, by its TenantPolicy'",
  },
  {
    holds:
      "!variables.isRoute || size(variables.selecting) == 0 || !has(variables.selecting[0].routeKinds) || object.kind in variables.selecting[0].routeKinds",
    message: `'RouteKindNotAllowed: kind ' + object.kind + ${REFUSED}`,
  },
  {
    holds: "size(variables.refusedProtocols) == 0",
    message: `'ProtocolNotAllowed: one of the protocols ' + variables.askedProtocols.join(', ') + ${REFUSED}`,
  },
  {
    holds: "size(variables.refusedPorts) == 0",
    message: `'PortNotAllowed: one of the ports ' + variables.listeners.map(each, has(each.port) ? string(each.port) : '0').join(', ') + ${REFUSED}`,
  },
  {
    holds:
      "size(variables.refusedHostnames) == 0 && size(variables.reservedHostnames) == 0 && size(variables.belowReserved) == 0 && size(variables.aboveReserved) == 0",
    message: `'HostnameNotAllowed: one of the hostnames ' + variables.hostnames.map(name, name == '' ? '(none)' : name).join(', ') + ${REFUSED}`,
  },
];

export function admissionPolicy(failurePolicy: FailurePolicy): object {
  return validatingPolicy({
    name: NAME,
    failurePolicy,
    paramKind: "TenantPolicy",
    resourceRules: RESOURCE_RULES,
    target: NAMES_TARGET,
    variables: VARIABLES,
    validations: VALIDATIONS.map(({ holds, message }) => ({
      expression: holds,
      message: "not allowed by the Gateway's TenantPolicy",
      messageExpression: message,
    })),
  });
}

/** The TenantPolicies of a namespace restrict what all others want of its Gateways. */
export function admissionBinding(namespace: string): object {
  return policyBinding({ name: NAME, namespace, missing: "Allow" });
}
