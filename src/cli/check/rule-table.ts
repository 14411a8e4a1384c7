/** The rules of `mergeway check`, in the order in which they run. */

import {
  certificateExpired,
  certificateExpiring,
  certificateInvalid,
  certificateName,
  certificateOverlap,
} from "./rules/certificate-rules.ts";
import type { CheckRule, Severity } from "./rules/finding.ts";
import {
  listenerConflict,
  listenerReference,
  listenerRefused,
  listenerWithoutRoutes,
  placeholderListener,
} from "./rules/listener-rules.ts";
import {
  gatewayNotAccepted,
  gatewayReferences,
  namespaceUnknown,
  otherController,
  setNotAccepted,
  unknownClass,
} from "./rules/owner-rules.ts";
import {
  policyConflict,
  policyInvalid,
  policyLooser,
  policyNotConfinable,
  policyReference,
  policyTarget,
  policyWithoutEffect,
} from "./rules/policy-rules.ts";
import { missingGrant, noEndpoints, policyNotAccepted, routeReference } from "./rules/reference-rules.ts";
import {
  overlap,
  routeNotAccepted,
  routeWithoutParent,
  ruleDropped,
  ruleRefused,
  shadowedRule,
  unreachableHostname,
  wildcardCarved,
} from "./rules/route-rules.ts";
import { tenantPolicyAudit, tenantPolicyNotAccepted } from "./rules/tenant-rules.ts";

export const RULES: readonly CheckRule[] = [
  gatewayNotAccepted,
  gatewayReferences,
  otherController,
  unknownClass,
  setNotAccepted,
  namespaceUnknown,
  listenerConflict,
  listenerRefused,
  missingGrant,
  listenerReference,
  certificateInvalid,
  certificateExpired,
  certificateExpiring,
  certificateName,
  certificateOverlap,
  routeWithoutParent,
  routeNotAccepted,
  ruleDropped,
  ruleRefused,
  routeReference,
  policyNotAccepted,
  policyTarget,
  policyConflict,
  policyNotConfinable,
  policyInvalid,
  policyReference,
  policyWithoutEffect,
  policyLooser,
  tenantPolicyNotAccepted,
  tenantPolicyAudit,
  shadowedRule,
  unreachableHostname,
  wildcardCarved,
  noEndpoints,
  listenerWithoutRoutes,
  placeholderListener,
  overlap,
];

/** Rules of reading: the ids that admission and the file source give, with their summaries. */
export const DOCUMENT_RULES: Readonly<Record<string, string>> = {
  "file/unreadable": "A file or folder cannot be read.",
  "cluster/forbidden":
    "A kind may not be read in the cluster with the rights of whoever asks, and counts as absent.",
  "cluster/left-out": "An object of the cluster is not shaped as Mergeway expects, and counts as absent.",
  "file/too-large": "A file is larger than any manifest.",
  "file/not-utf8": "A file is not UTF-8.",
  "file/last-good": "While serving: a document broke, and its last good version stays in force.",
  "yaml/…": "The text is not YAML; the rest of the id says in which way.",
  "yaml/alias": "An alias refers to an anchor that is not there.",
  "yaml/control-character": "The text holds control characters.",
  "yaml/duplicate-key": "A key stands twice in one mapping.",
  "yaml/expansion": "Aliases expand to more than any manifest holds.",
  "yaml/key": "A key is no plain text.",
  "yaml/too-deep": "The document nests too deeply.",
  "unknown-kind": "A kind or version of the Gateway API that does not exist.",
  "unknown-field": "A field that the kind does not have; an API server would drop or refuse it.",
  "metadata/annotation-key": "A key of an annotation is not a qualified name.",
  "metadata/annotations-size": "The annotations are larger than an API server takes.",
  "metadata/data-key": "A key of a Secret or ConfigMap is not a file name.",
  "metadata/data-size": "The data of a Secret or ConfigMap is larger than an API server takes.",
  "metadata/label-key": "A key of a label is not a qualified name.",
  "metadata/label-value": "A value of a label is not one that an API server takes.",
  "metadata/name": "The name is not one that an API server takes.",
  "metadata/namespace": "The namespace is not valid, or the kind has none.",
  "schema/alternatives": "None of the alternatives that the schema allows fits.",
  "schema/duplicate": "Two entries of a list with the same key.",
  "schema/enum": "A value outside of the allowed ones.",
  "schema/format": "A text that is not of the format it should have.",
  "schema/max-items": "Too many entries.",
  "schema/max-length": "A text that is too long.",
  "schema/max-properties": "Too many fields.",
  "schema/maximum": "A number that is too large.",
  "schema/min-items": "Too few entries.",
  "schema/min-length": "A text that is too short.",
  "schema/min-properties": "Too few fields.",
  "schema/minimum": "A number that is too small.",
  "schema/pattern": "A text that does not match the pattern of the field.",
  "schema/required": "A required field is missing.",
  "schema/type": "A value of another type than the field has.",
  cel: "A rule of the API between fields does not hold.",
  "too-many-errors": "One document has more errors than are listed.",
  "duplicate-object": "An object is there twice; the first one counts.",
};

/** Rules of `--against`. */
export const CHANGE_RULES: Readonly<
  Record<
    "hostname-owner-changed" | "hostname-lost" | "hostname-gained",
    { readonly severity: Severity; readonly summary: string }
  >
> = {
  "hostname-owner-changed": {
    severity: "error",
    summary: "A port and hostname would be served by another owner (--against, --without).",
  },
  "hostname-lost": {
    severity: "warning",
    summary: "A port and hostname would no longer be served (--against, --without).",
  },
  "hostname-gained": {
    severity: "info",
    summary: "A port and hostname would be served that was not (--against, --without).",
  },
};
