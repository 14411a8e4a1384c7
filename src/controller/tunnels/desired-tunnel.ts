/**
 * Which tunnel a Gateway asks for, read off its parameters and the Secrets that these refer to.
 * Secrets are those of the parameters' own namespace: a Gateway's own parameters reach nothing but
 * its own namespace, those of the class what the platform team has put beside them.
 */
import type { Secret } from "../../api/core.ts";
import type { Gateway, GatewayClass } from "../../api/gateway.ts";
import type {
  GatewayParameters,
  SecretKeyReference,
  TunnelParameters,
} from "../../api/gateway-parameters.ts";
import { type Key, keyFor } from "../../api/key.ts";
import type { Resource } from "../../api/resource.ts";
import { effectiveParameters, effectiveTunnel } from "../../api/rules/effective-parameters.ts";
import { Credential } from "../../dataplanes/tunnel/cloudflare/credential.ts";
import { digest } from "../../digest/digest.ts";

export type DesiredTunnel = ApiTunnel | TokenTunnel | BrokenTunnel;

interface Comparable {
  /** Equal for two desired tunnels that are the same. */
  readonly signature: string;
}

/** A tunnel that is created or found through Cloudflare's API. */
export interface ApiTunnel extends Comparable {
  readonly type: "api";
  readonly account: string;
  readonly credential: Credential;
  readonly target: { readonly name: string } | { readonly id: string };
  /** Whether the tunnel is deleted with the Gateway. */
  readonly deletes: boolean;
  readonly claim: string;
}

/** A tunnel that somebody else has made, known by its token alone. */
interface TokenTunnel extends Comparable {
  readonly type: "token";
  readonly credential: Credential;
  /** No two Gateways can have the same: requests would reach either at random. */
  readonly claim: string;
}

export interface BrokenTunnel extends Comparable {
  readonly type: "broken";
  readonly message: string;
}

export type Find = (key: Key) => Resource | undefined;

/** Undefined where the Gateway is not to be served through a tunnel. */
export function desiredTunnel(gateway: Gateway, find: Find): DesiredTunnel | undefined {
  const findParameters = (key: Key): GatewayParameters | undefined => find(key) as GatewayParameters;
  const { dataPlane } = effectiveParameters(gateway, classOf(gateway, find), findParameters);
  return dataPlane === "tunnel" ? tunnelOf(gateway, find) : undefined;
}

/** The tunnel of the parameters, even if they choose another data plane now. */
export function tunnelOf(gateway: Gateway, find: Find): DesiredTunnel {
  const findParameters = (key: Key): GatewayParameters | undefined => find(key) as GatewayParameters;
  const found = effectiveTunnel(gateway, classOf(gateway, find), findParameters);
  if (found === undefined)
    return broken("the parameters choose the data plane tunnel and have no spec.tunnel");
  const { tunnel, namespace } = found;
  if (tunnel.tunnelTokenSecretRef !== undefined) return byToken(tunnel.tunnelTokenSecretRef, namespace, find);
  if (tunnel.credentialsSecretRef === undefined)
    return broken("spec.tunnel has neither credentialsSecretRef nor tunnelTokenSecretRef");
  return byApi(gateway, tunnel, tunnel.credentialsSecretRef, { namespace, find });
}

export function classOf(gateway: Gateway, find: Find): GatewayClass | undefined {
  return find(keyFor("GatewayClass", "", gateway.spec.gatewayClassName)) as GatewayClass | undefined;
}

/** A hash, to compare credentials without keeping them. */
export function credentialDigest(credential: Credential): string {
  return digest(credential.reveal(), "hex", 16);
}

export function broken(message: string): BrokenTunnel {
  return { type: "broken", message, signature: `broken ${message}` };
}

function byApi(
  gateway: Gateway,
  { accountId, name, tunnelId, deletionPolicy }: TunnelParameters,
  reference: SecretKeyReference,
  { namespace, find }: { readonly namespace: string; readonly find: Find },
): DesiredTunnel {
  if (accountId === undefined) return broken("spec.tunnel.accountId is not set");
  const credential = readKey(reference, "api-token", namespace, find);
  if (credential === undefined) return broken(missing("credentialsSecretRef", reference, "api-token"));
  const own = `mergeway.${gateway.metadata.namespace}.${gateway.metadata.name}`;
  const target = tunnelId === undefined ? { name: name ?? own } : { id: tunnelId };
  const deletes = tunnelId === undefined && deletionPolicy !== "Retain";
  const claim = JSON.stringify([namespace, reference.name, accountId, target]);
  const signature = JSON.stringify([accountId, credentialDigest(credential), target, deletes]);
  return { type: "api", account: accountId, credential, target, deletes, claim, signature };
}

function byToken(reference: SecretKeyReference, namespace: string, find: Find): DesiredTunnel {
  const credential = readKey(reference, "tunnel-token", namespace, find);
  if (credential === undefined) return broken(missing("tunnelTokenSecretRef", reference, "tunnel-token"));
  const claim = JSON.stringify([namespace, reference.name, reference.key]);
  return { type: "token", credential, claim, signature: `token ${credentialDigest(credential)}` };
}

function readKey(
  { name, key }: SecretKeyReference,
  usual: string,
  namespace: string,
  find: Find,
): Credential | undefined {
  const secret = find(keyFor("Secret", namespace, name)) as Secret | undefined;
  const text = Buffer.from(secret?.data?.[key ?? usual] ?? "", "base64")
    .toString()
    .trim();
  return text === "" ? undefined : new Credential(text);
}

function missing(field: string, { name, key }: SecretKeyReference, usual: string): string {
  return `spec.tunnel.${field}: there is no Secret ${name} with a key ${key ?? usual}`;
}
