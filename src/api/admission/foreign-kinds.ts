import { EXPERIMENTAL_GROUP, GATEWAY_GROUP, MERGEWAY_GROUP } from "../resource.ts";
import type { KnownKind } from "./kinds.ts";
import { nearest, type Pass } from "./schema/pass.ts";

/** Kinds of the Gateway API that Mergeway has no use for; they may lie in the same folder. */
const UNUSED = new Set(["XBackend", "XBackendTrafficPolicy", "XMesh", "XTelemetryPolicy"]);

/**
 * What to say about an object of a kind that is not read: nothing when it plainly belongs to
 * someone else, an error when it was meant for a Gateway and would silently do nothing. True when
 * the object may be ignored.
 */
export function isForeign(
  apiVersion: string,
  kind: string,
  kinds: readonly KnownKind[],
  pass: Pass,
): boolean {
  const slash = apiVersion.indexOf("/");
  const group = slash < 0 ? "" : apiVersion.slice(0, slash);
  const version = apiVersion.slice(slash + 1);
  const sameKind = kinds.find((known) => known.kind === kind);
  if (sameKind?.group === group) {
    const served = sameKind.served
      .map(({ name }) => `${group === "" ? "" : `${group}/`}${name}`)
      .join(" or ");
    pass.block("unserved-version", `${kind} has no served version ${version}`, `Use apiVersion: ${served}.`, [
      "apiVersion",
    ]);
    return false;
  }
  const isGatewayGroup = group === GATEWAY_GROUP || group === EXPERIMENTAL_GROUP;
  if (isGatewayGroup && UNUSED.has(kind)) return true;
  if (isGatewayGroup || group === MERGEWAY_GROUP) {
    pass.block(
      "unknown-kind",
      `there is no kind ${kind.slice(0, 80)} in ${group}`,
      kindRemedy(kind, group, kinds),
      ["kind"],
    );
    return false;
  }
  const meantForUs = sameKind !== undefined && sameKind.group === GATEWAY_GROUP;
  if (
    meantForUs &&
    (group === "" || group.endsWith("networking.k8s.io") || nearest(group, [GATEWAY_GROUP]))
  ) {
    const remedy = `Use apiVersion: ${sameKind.group}/${sameKind.canonical}.`;
    pass.block("unknown-kind", `there is no ${kind} in ${JSON.stringify(group.slice(0, 80))}`, remedy, [
      "apiVersion",
    ]);
    return false;
  }
  return true;
}

function kindRemedy(kind: string, group: string, kinds: readonly KnownKind[]): string {
  const elsewhere = kinds.find((known) => known.kind === kind || known.kind === `X${kind}`);
  if (elsewhere !== undefined) {
    return `Use kind: ${elsewhere.kind} with apiVersion: ${elsewhere.group}/${elsewhere.canonical}.`;
  }
  const here = kinds.filter((known) => known.group === group).map((known) => known.kind);
  const close = nearest(kind, here);
  return close === undefined ? `Use one of: ${here.join(", ")}.` : `Did you mean ${close}?`;
}
