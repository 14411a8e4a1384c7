/**
 * Which Gateways are ours, and whether each can be served at all, before any of its listeners is
 * looked at. A Gateway is ours when its GatewayClass names our controller. Two things make a whole
 * Gateway unservable, and with it everything attached (GEP-1713, ListenerSet Conditions:
 * ParentNotAccepted): an address of a type that we cannot give, and parameters that we cannot use.
 * Its own listeners never do: a platform team's broken listener must not take down a tenant's.
 */

import type { Gateway, GatewayClass, NamespaceSelection } from "../../api/gateway.ts";
import type { DataPlaneName } from "../../api/gateway-parameters.ts";
import { type Key, keyFor } from "../../api/key.ts";
import { MERGEWAY_GROUP } from "../../api/resource.ts";
import { effectiveParameters } from "../../api/rules/effective-parameters.ts";
import type { ReadonlyCollection } from "../../graph/collection.ts";
import type { Graph } from "../../graph/graph.ts";
import type { Lookup } from "../../graph/lookup.ts";
import { type TenantLimits, tenantLimits } from "../../plan/tenant-limits.ts";
import type { Inputs } from "../foundation/inputs.ts";
import type { EngineSettings } from "../foundation/settings.ts";
import type { Failure } from "../foundation/verdict.ts";
import { allowedChildren, parentOfChild } from "./owners.ts";

export interface GatewayState {
  readonly key: Key;
  readonly className: string;
  readonly isChild: boolean;
  /** The data plane that the parameters choose, where they choose one. */
  readonly dataPlane?: DataPlaneName;
  /** Absent when the parameters set none. */
  readonly tenantLimits?: TenantLimits;
  /** Why nothing of this Gateway can be served. */
  readonly problem?: Failure;
  readonly allowedListeners: NamespaceSelection;
  /**
   * Whether spec.allowedListeners is there at all. Without it, the condition AttachedListenerSets
   * is Unknown instead of False (GEP-1713 (experimental), Gateway Conditions).
   */
  readonly declaresAllowedListeners: boolean;
  readonly allowedChildren?: NamespaceSelection;
}

const SUPPORTED_ADDRESS_TYPES: readonly string[] = ["IPAddress", "Hostname"];

export function deriveGatewayStates(
  graph: Graph,
  inputs: Inputs,
  settings: EngineSettings,
): ReadonlyCollection<GatewayState> {
  return graph.derive("gateway states", inputs.gateways, (key, gateway, lookup) => {
    const gatewayClass = lookup.get(
      inputs.classes,
      keyFor("GatewayClass", "", gateway.spec.gatewayClassName),
    );
    if (!isOurs(gatewayClass, settings)) return undefined;
    const parameters = effectiveParameters(gateway, gatewayClass, (at) => lookup.get(inputs.parameters, at));
    const chosen = settings.dataPlanes === undefined ? undefined : parameters.dataPlane;
    const limits = parameters.tenantLimits;
    const problem =
      problemOf(gateway, gatewayClass, lookup, inputs) ?? choiceProblem(chosen, settings.dataPlanes);
    const children = allowedChildren(gateway);
    return {
      key,
      className: gateway.spec.gatewayClassName,
      isChild: parentOfChild(gateway) !== undefined,
      ...(chosen === undefined ? {} : { dataPlane: chosen }),
      ...(limits === undefined ? {} : { tenantLimits: tenantLimits(limits) }),
      ...(problem === undefined ? {} : { problem }),
      allowedListeners: gateway.spec.allowedListeners?.namespaces ?? { from: "None" },
      declaresAllowedListeners: gateway.spec.allowedListeners !== undefined,
      ...(children === undefined ? {} : { allowedChildren: children }),
    };
  });
}

export function isOurs(gatewayClass: GatewayClass | undefined, settings: EngineSettings): boolean {
  if (gatewayClass === undefined) return settings.adoptUnknownClasses;
  return gatewayClass.spec.controllerName === settings.controllerName;
}

function problemOf(
  gateway: Gateway,
  gatewayClass: GatewayClass | undefined,
  lookup: Lookup,
  inputs: Inputs,
): Failure | undefined {
  const unsupported = gateway.spec.addresses?.find(({ type }) => !SUPPORTED_ADDRESS_TYPES.includes(type));
  if (unsupported !== undefined) {
    return {
      reason: "UnsupportedAddress",
      message: `spec.addresses asks for the address type ${unsupported.type}; supported are ${SUPPORTED_ADDRESS_TYPES.join(" and ")}`,
    };
  }
  const classProblem = parametersProblem(gatewayClass?.spec.parametersRef, "", lookup, inputs);
  if (classProblem !== undefined) {
    return { reason: "InvalidParameters", message: "the parameters of the GatewayClass cannot be used" };
  }
  const own = parametersProblem(
    gateway.spec.infrastructure?.parametersRef,
    gateway.metadata.namespace ?? "",
    lookup,
    inputs,
  );
  return own === undefined
    ? undefined
    : { reason: "InvalidParameters", message: `spec.infrastructure.parametersRef: ${own}` };
}

function choiceProblem(
  chosen: DataPlaneName | undefined,
  dataPlanes: EngineSettings["dataPlanes"],
): Failure | undefined {
  if (chosen === undefined || dataPlanes?.[chosen] !== undefined) return undefined;
  return { reason: "InvalidParameters", message: `the data plane ${chosen} is not available here` };
}

/** Why a parametersRef cannot be used, if so. Their content is the API server's to validate. */
export function parametersProblem(
  reference: { group: string; kind: string; name: string; namespace?: string } | undefined,
  namespace: string,
  lookup: Lookup,
  inputs: Inputs,
): string | undefined {
  if (reference === undefined) return undefined;
  if (reference.group !== MERGEWAY_GROUP || reference.kind !== "GatewayParameters") {
    return `${reference.group}/${reference.kind} is not a kind of parameters; use mergeway.dev/GatewayParameters`;
  }
  const at = reference.namespace ?? namespace;
  const parameters = lookup.get(inputs.parameters, keyFor("GatewayParameters", at, reference.name));
  return parameters === undefined ? `GatewayParameters ${reference.name} does not exist` : undefined;
}
