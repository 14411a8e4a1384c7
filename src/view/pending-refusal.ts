/**
 * What the status of a route says of a refusal by the data plane. Only a controller hears of that;
 * whoever computes from manifests has to read it where the controller has written it.
 */
import type { ParentReference } from "../api/references.ts";
import type { Route } from "../api/routes.ts";
import { ROUTE_PROGRAMMED } from "../engine/routes/route-refusals.ts";

export interface HeldRefusal {
  readonly parentRef: ParentReference;
  readonly reason: string;
  readonly message: string;
}

/** Of the route as it is now: what is said of an earlier generation may be over. */
export function heldRefusals({ metadata, status }: Route): readonly HeldRefusal[] {
  return (status?.parents ?? []).flatMap(({ parentRef, conditions = [] }) =>
    conditions
      .filter(({ type, status: value }) => type === ROUTE_PROGRAMMED && value === "False")
      .filter(({ observedGeneration }) => observedGeneration === metadata.generation)
      .map(({ reason, message }) => ({ parentRef, reason, message })),
  );
}

/** Of one of the route's parents, whose references are as they are written in both places. */
export function heldRefusalAt(
  route: Route,
  { kind, name, namespace, sectionName, port }: ParentReference,
): HeldRefusal | undefined {
  const own = route.metadata.namespace;
  return heldRefusals(route).find(
    ({ parentRef }) =>
      parentRef.kind === kind &&
      parentRef.name === name &&
      (parentRef.namespace ?? own) === (namespace ?? own) &&
      parentRef.sectionName === sectionName &&
      parentRef.port === port,
  );
}
