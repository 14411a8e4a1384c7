/** Metrics of routes, the same for every kind of them. */
import type { ParentReference } from "../../api/references.ts";
import type { Route } from "../../api/routes.ts";
import type { RouteVerdict } from "../../engine/verdicts/verdicts.ts";
import {
  conditionSamples,
  info,
  type JudgedObject,
  LIFE_FAMILIES,
  type StateFamily,
  type StateSample,
} from "./state-family.ts";

export interface JudgedRoute extends JudgedObject<Route, RouteVerdict> {
  readonly controllerName: string;
}

const PARENT: readonly string[] = [
  ...["parent_group", "parent_kind", "parent_namespace", "parent_name"],
  ...["parent_section_name", "parent_port"],
];

/** Where a reference has no namespace, it is that of the route: series of parents can be joined. */
function parentValues(
  { group, kind, namespace, name, sectionName, port }: ParentReference,
  { metadata }: Route,
): StateSample["values"] {
  return [group, kind, namespace ?? metadata.namespace, name, sectionName, port];
}

const PARENT_FAMILIES: readonly StateFamily<JudgedRoute>[] = [
  ...LIFE_FAMILIES,
  {
    suffix: "parent_info",
    help: "A parent that the route names, always 1",
    labels: PARENT,
    samples: ({ resource }) =>
      (resource.spec.parentRefs ?? []).map((parent) => info(...parentValues(parent, resource))),
  },
  {
    suffix: "status_parent_info",
    help: "A parent that this controller tells of in the route's status, always 1",
    labels: ["controller_name", ...PARENT],
    samples: ({ resource, verdict, controllerName }) =>
      verdict.parents.map(({ parentRef }) => info(controllerName, ...parentValues(parentRef, resource))),
  },
  {
    suffix: "status_parent",
    help: "1 where the condition of the route for the parent is True",
    labels: [...PARENT, "type"],
    samples: ({ resource, verdict }) =>
      verdict.parents.flatMap(({ parentRef, conditions }) =>
        conditionSamples(conditions, ...parentValues(parentRef, resource)),
      ),
  },
];

const HOSTNAME_FAMILIES: readonly StateFamily<JudgedRoute>[] = [
  {
    suffix: "hostname_info",
    help: "A hostname of the route, always 1",
    labels: ["hostname"],
    samples: ({ resource: { spec } }) =>
      ("hostnames" in spec ? (spec.hostnames ?? []) : []).map((hostname) => info(hostname)),
  },
];

export function routeFamilies(kind: Route["kind"]): readonly StateFamily<JudgedRoute>[] {
  return kind === "TCPRoute" || kind === "UDPRoute"
    ? PARENT_FAMILIES
    : [...PARENT_FAMILIES, ...HOSTNAME_FAMILIES];
}
