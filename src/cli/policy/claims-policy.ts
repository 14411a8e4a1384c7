/**
 * Claims at admission: a hostname that a namespace uses is refused to all others. One
 * ValidatingAdmissionPolicy of fixed text, whose parameters are the HostnameClaims that the
 * controller writes.
 *
 * - The closest claim counts for nobody but its namespaces: the name itself, and each wildcard
 *   above it that holds what is below (`except` is there, with the names below it that others use).
 * - What an object asked for before, at the same port and Gateway, passes: a set that has lost a
 *   name can still be changed.
 * - The API server looks at one parameter at a time, so each is enough by itself.
 *
 * The API server knows claims a moment after the controller has written them. Two objects that ask
 * for one free name within that moment are both let in, and precedence decides between them.
 */
import { EXPERIMENTAL_GROUP, GATEWAY_GROUP } from "../../api/resource.ts";
import { parentsOf } from "./admission-policy.ts";
import { type FailurePolicy, OPERATIONS, policyBinding, validatingPolicy } from "./validating-policy.ts";

/** What to do where there are no HostnameClaims: let objects in, or refuse all of them. */
export type MissingClaims = "Allow" | "Deny";

const NAME = "mergeway-hostname-claims";

/** Routes cannot take a name from a listener: a request goes to the listener first. */
const RESOURCE_RULES = [
  { apiGroups: [GATEWAY_GROUP], resources: ["gateways", "listenersets"], ...OPERATIONS },
  { apiGroups: [EXPERIMENTAL_GROUP], resources: ["xlistenersets"], ...OPERATIONS },
];

const GATEWAY = "params.metadata.namespace + '/' + params.spec.gateway";

/** A name of 253 characters has at most 127 labels. */
const LABELS = Array.from({ length: 126 }, (_, index) => index + 1).join(",");

function askedIn(object: "object" | "oldObject"): string {
  const text =
    "(has(each.hostname) && each.hostname != '' ? each.hostname.lowerAscii() : '*') + '|' + (has(each.port) ? string(each.port) : '0') + '|' + each.protocol";
  return `has(${object}.spec.listeners) ? ${object}.spec.listeners.filter(each, each.protocol in ['HTTP', 'HTTPS', 'TLS']).map(each, ${text}) : []`;
}

const IS_EXCEPTED = `variables.names[claim].except.exists(below, request.namespace in variables.names[claim].except[below]
  && (below == name || (below.startsWith('*.') && name.endsWith(below.substring(1)))))`;

/** The claims, of the name itself and of wildcards above it, that are in the way of `name`. */
const CLAIMS_AGAINST = `(([name] + [${LABELS}].filter(label, label < size(name.split('.'))).map(label, '*.' + name.split('.', label + 1)[label]))
.filter(claim, claim in variables.names && size(variables.names[claim].namespaces) > 0 && !(request.namespace in variables.names[claim].namespaces)
  && (claim == name || (has(variables.names[claim].except) && !(${IS_EXCEPTED})))) + [''])[0]`;

const VARIABLES: Readonly<Record<string, string>> = {
  names: "params.spec.names",
  kept: `oldObject != null && (${parentsOf("oldObject")}).exists(parent, parent == ${GATEWAY}) ? (${askedIn("oldObject")}) : []`,
  added: `(${askedIn("object")}).filter(asked, !(asked in variables.kept)).map(asked, asked.split('|')[0])`,
  refused: `variables.added.map(name, {'name': name, 'claim': ${CLAIMS_AGAINST}}).filter(each, each.claim != '')`,
};

const MESSAGE =
  "'HostnameClaimed: another namespace uses ' + variables.refused.map(each, (each.name == '*' ? 'listeners without a hostname' : each.name) + ' (reference ' + variables.names[each.claim].reference + ')').join(', ') + '; the owner of the Gateway can transfer a hostname'";

export function claimsPolicy(failurePolicy: FailurePolicy): object {
  return validatingPolicy({
    name: NAME,
    failurePolicy,
    paramKind: "HostnameClaims",
    resourceRules: RESOURCE_RULES,
    target: `(${parentsOf("object")}).exists(parent, parent == ${GATEWAY})`,
    variables: VARIABLES,
    validations: [
      {
        expression: "size(variables.refused) == 0",
        message: "another namespace uses the hostname",
        messageExpression: MESSAGE,
      },
    ],
  });
}

/** Objects of the Gateways' own namespace are not restricted: the Gateway itself is one. */
export function claimsBinding(namespace: string, missing: MissingClaims): object {
  const tenants = { key: "kubernetes.io/metadata.name", operator: "NotIn", values: [namespace] };
  const matchResources = { namespaceSelector: { matchExpressions: [tenants] } };
  return policyBinding({ name: NAME, namespace, missing, matchResources });
}
