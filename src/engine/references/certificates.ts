/**
 * Certificates of listeners and of Gateways (Gateway.spec.listeners.tls.certificateRefs). Each
 * Secret is read once, whoever refers to it; a renewed Secret costs one reading and the items of
 * those who use it.
 */
import type { Key } from "../../api/key.ts";
import { keyFor } from "../../api/key.ts";
import type { ObjectReference } from "../../api/references.ts";
import type { Referrer } from "../../api/rules/reference-grants.ts";
import type { ReadonlyCollection } from "../../graph/collection.ts";
import type { Graph } from "../../graph/graph.ts";
import type { Lookup } from "../../graph/lookup.ts";
import type { Inputs } from "../foundation/inputs.ts";
import type { EngineSettings, TlsKeyPair } from "../foundation/settings.ts";
import type { Failure } from "../foundation/verdict.ts";
import { type Grants, isPermitted } from "./grants.ts";

export type KeyPairReading = { readonly pair: TlsKeyPair } | { readonly problem: string };

export interface Certificates {
  readonly keyPairs: ReadonlyCollection<KeyPairReading>;
  readonly authorities: ReadonlyCollection<AuthoritiesReading>;
}

export type AuthoritiesReading = { readonly pem: string } | { readonly problem: string };

export function deriveCertificates(graph: Graph, inputs: Inputs, settings: EngineSettings): Certificates {
  return {
    keyPairs: graph.derive("key pairs", inputs.secrets, (_key, { type, data }): KeyPairReading => {
      if (type !== undefined && type !== "kubernetes.io/tls" && type !== "Opaque") {
        return { problem: `its type is ${type}, not kubernetes.io/tls` };
      }
      const certificate = data?.["tls.crt"];
      const key = data?.["tls.key"];
      if (!certificate) return { problem: "it has no tls.crt" };
      if (!key) return { problem: "it has no tls.key" };
      const reading = settings.readKeyPair(certificate, key);
      return "problem" in reading ? reading : { pair: reading };
    }),
    authorities: graph.derive("authorities", inputs.configMaps, (_key, { data }): AuthoritiesReading => {
      const bundle = data?.["ca.crt"];
      return bundle ? settings.readAuthorities(bundle) : { problem: "it has no ca.crt" };
    }),
  };
}

export type Resolution<T> = { readonly value: T } | { readonly failure: Failure };

/** A reference to a Secret with a certificate: its key when it can be used, or why not. */
export function resolveKeyPair(
  reference: ObjectReference,
  from: Referrer,
  lookup: Lookup,
  { certificates, grants }: { readonly certificates: Certificates; readonly grants: Grants },
): Resolution<Key> {
  const namespace = reference.namespace ?? from.namespace;
  const shown = reference.namespace === undefined ? reference.name : `${namespace}/${reference.name}`;
  if (reference.group !== "" || reference.kind !== "Secret") {
    return invalidReference(
      `${reference.group || "core"}/${reference.kind} ${shown} cannot be used as a certificate; only Secrets can`,
    );
  }
  if (!isPermitted(lookup, grants, from, { ...reference, namespace })) {
    return {
      failure: {
        reason: "RefNotPermitted",
        message: `no ReferenceGrant in namespace ${namespace} lets ${from.kind}s of namespace ${from.namespace} use Secret ${reference.name}`,
      },
    };
  }
  const key = keyFor("Secret", namespace, reference.name);
  const reading = lookup.get(certificates.keyPairs, key);
  if (reading === undefined) return invalidReference(`Secret ${shown} does not exist`);
  return "problem" in reading
    ? invalidReference(`Secret ${shown} cannot be used: ${reading.problem}`)
    : { value: key };
}

function invalidReference(message: string): { readonly failure: Failure } {
  return { failure: { reason: "InvalidCertificateRef", message } };
}
