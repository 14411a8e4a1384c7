/**
 * Client certificates asked for by a Gateway (spec.tls.frontend): the default for all of its HTTPS
 * ports, or one port's own setting. The references are the Gateway's, so only grants to the Gateway
 * count, whoever's listener is on the port.
 */
import type { FrontendValidation, Gateway } from "../../api/gateway.ts";
import { keyFor } from "../../api/key.ts";
import { GATEWAY_GROUP } from "../../api/resource.ts";
import type { ReadonlyCollection } from "../../graph/collection.ts";
import type { Graph } from "../../graph/graph.ts";
import type { Lookup } from "../../graph/lookup.ts";
import type { ClientValidation } from "../../plan/client-validation.ts";
import type { Inputs } from "../foundation/inputs.ts";
import type { Failure } from "../foundation/verdict.ts";
import type { Certificates } from "./certificates.ts";
import { type Grants, isPermitted } from "./grants.ts";

export interface PortValidation {
  readonly validation: ClientValidation;
  /** The first reference that could not be resolved. */
  readonly unresolved?: Failure;
}

export interface FrontendSettings {
  readonly default?: PortValidation;
  readonly perPort: Readonly<Record<number, PortValidation | null>>;
}

export function deriveFrontendSettings(
  graph: Graph,
  inputs: Inputs,
  certificates: Certificates,
  grants: Grants,
): ReadonlyCollection<FrontendSettings> {
  function resolve(spec: FrontendValidation, gateway: Gateway, lookup: Lookup): PortValidation {
    const authorities: string[] = [];
    let unresolved: Failure | undefined;
    const from = { group: GATEWAY_GROUP, kind: "Gateway", namespace: gateway.metadata.namespace ?? "" };
    for (const reference of spec.caCertificateRefs) {
      const namespace = reference.namespace ?? from.namespace;
      const reading = lookup.get(certificates.authorities, keyFor("ConfigMap", namespace, reference.name));
      if (reference.group !== "" || reference.kind !== "ConfigMap") {
        unresolved ??= refuse(
          "InvalidCACertificateKind",
          `${reference.kind} ${reference.name} is not a ConfigMap`,
        );
      } else if (!isPermitted(lookup, grants, from, { ...reference, namespace })) {
        unresolved ??= refuse(
          "RefNotPermitted",
          `no ReferenceGrant permits the use of ConfigMap ${reference.name}`,
        );
      } else if (reading === undefined || "problem" in reading) {
        unresolved ??= refuse(
          "InvalidCACertificateRef",
          `ConfigMap ${reference.name} does not hold a CA certificate`,
        );
      } else authorities.push(reading.pem);
    }
    return {
      validation: { authorities, mode: spec.mode },
      ...(unresolved === undefined ? {} : { unresolved }),
    };
  }

  return graph.derive("frontend settings", inputs.gateways, (_key, gateway, lookup) => {
    const frontend = gateway.spec.tls?.frontend;
    if (frontend === undefined) return undefined;
    const perPort: Record<number, PortValidation | null> = {};
    for (const { port, tls } of frontend.perPort ?? []) {
      perPort[port] = tls.validation === undefined ? null : resolve(tls.validation, gateway, lookup);
    }
    const byDefault = frontend.default.validation;
    return { ...(byDefault === undefined ? {} : { default: resolve(byDefault, gateway, lookup) }), perPort };
  });
}

/**
 * What applies to one port: its own setting, even one that asks for nothing, before the default.
 */
export function validationForPort(
  settings: FrontendSettings | undefined,
  port: number,
): PortValidation | undefined {
  const own = settings?.perPort[port];
  return own === undefined ? settings?.default : (own ?? undefined);
}

function refuse(reason: string, message: string): Failure {
  return { reason, message };
}
