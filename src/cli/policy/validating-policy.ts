/** What admission policies whose parameters are objects of ours have in common. */
import { MERGEWAY_GROUP } from "../../api/resource.ts";

export type FailurePolicy = "Ignore" | "Fail";

export const OPERATIONS: object = {
  apiVersions: ["*"],
  operations: ["CREATE", "UPDATE"],
  scope: "Namespaced",
};

const API_VERSION = "admissionregistration.k8s.io/v1";

export interface PolicyText {
  readonly name: string;
  readonly failurePolicy: FailurePolicy;
  /** The kind of its parameters. */
  readonly paramKind: "TenantPolicy" | "HostnameClaims";
  readonly resourceRules: readonly object[];
  /** Whether the object is about the Gateway of the parameter, in CEL. */
  readonly target: string;
  readonly variables: Readonly<Record<string, string>>;
  readonly validations: readonly object[];
}

export function validatingPolicy(text: PolicyText): object {
  const { name, failurePolicy, paramKind, resourceRules, target, variables, validations } = text;
  return {
    apiVersion: API_VERSION,
    kind: "ValidatingAdmissionPolicy",
    metadata: metadataOf(name),
    spec: {
      failurePolicy,
      paramKind: { apiVersion: `${MERGEWAY_GROUP}/v1alpha1`, kind: paramKind },
      matchConstraints: { resourceRules },
      matchConditions: [
        { name: "enforced", expression: "params.spec.enforcement != 'Audit'" },
        { name: "tenant", expression: "request.namespace != params.metadata.namespace" },
        {
          name: "changed",
          expression: "oldObject == null || object.kind == 'Gateway' || object.spec != oldObject.spec",
        },
        // Last, and before any rule is looked at: most objects are about another Gateway.
        { name: "target", expression: target },
      ],
      variables: Object.entries(variables).map(([variable, expression]) => ({ name: variable, expression })),
      validations,
    },
  };
}

export interface BindingText {
  /** Of the policy. */
  readonly name: string;
  /** Of the parameters. */
  readonly namespace: string;
  /** What to do where there is no parameter. */
  readonly missing: "Allow" | "Deny";
  readonly matchResources?: object;
}

export function policyBinding({ name, namespace, missing, matchResources }: BindingText): object {
  return {
    apiVersion: API_VERSION,
    kind: "ValidatingAdmissionPolicyBinding",
    metadata: metadataOf(`${name}-${namespace}`),
    spec: {
      policyName: name,
      paramRef: { namespace, selector: {}, parameterNotFoundAction: missing },
      ...(matchResources === undefined ? {} : { matchResources }),
      validationActions: ["Deny"],
    },
  };
}

function metadataOf(name: string): object {
  return { name, labels: { "app.kubernetes.io/name": "mergeway" } };
}
