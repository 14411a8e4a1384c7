/**
 * The tunnel data plane of the standalone mode: the embedded one on loopback, tunnels that are
 * managed, connectors beside us.
 */
import { type Key, keyFor, partsOf } from "../../api/key.ts";
import { createEmbeddedDataPlane } from "../../dataplanes/embedded/embedded-data-plane.ts";
import { CloudflareApi } from "../../dataplanes/tunnel/cloudflare/cloudflare-api.ts";
import { Credential } from "../../dataplanes/tunnel/cloudflare/credential.ts";
import {
  ManagedTunnels,
  type ManagedTunnelsOptions,
} from "../../dataplanes/tunnel/cloudflare/managed-tunnels.ts";
import type { TunnelState } from "../../dataplanes/tunnel/cloudflare/tunnel-link.ts";
import { makeOriginCertificate } from "../../dataplanes/tunnel/origin-certificate.ts";
import { TunnelDataPlane } from "../../dataplanes/tunnel/tunnel-data-plane.ts";
import { tunnelFact } from "../../dataplanes/tunnel/tunnel-fact.ts";
import { CannotRun, type Host } from "../foundation/command.ts";
import type { MakePlane } from "./served-plane.ts";

export interface TunnelSettings {
  readonly prefix: string;
  readonly firstPort: number;
  readonly cloudflared: readonly string[];
  /** Connections of a connector to the edge; undefined leaves it to the connector. */
  readonly connections?: number;
  readonly deleteWithGateway: boolean;
  /** For tests, which have no time to wait. */
  readonly waits?: Pick<ManagedTunnelsOptions, "again" | "recheckMs"> & { readonly pollMs?: number };
}

const ADDRESS = "127.0.0.1";
export function tunnelPlane(settings: TunnelSettings, host: Host): MakePlane {
  const account = required(host, "CLOUDFLARE_ACCOUNT_ID");
  const token = new Credential(required(host, "CLOUDFLARE_API_TOKEN"));
  const baseUrl = host.env["CLOUDFLARE_BASE_URL"];
  return async ({ workers, logger, ...hooks }) => {
    const api = new CloudflareApi({
      account,
      token,
      signal: host.signal,
      ...(baseUrl === undefined ? {} : { baseUrl }),
    });
    const tunnels = new ManagedTunnels({
      ...settings.waits,
      api,
      nameOf: (gateway) => tunnelName(settings.prefix, gateway),
      connector: connectorOf(settings, host),
      log: (level, message) => {
        if (level !== "debug" || host.env["MERGEWAY_DEBUG"])
          logger[level === "warn" ? "warn" : "info"](message);
      },
    });
    const states = new Map<Key, TunnelState>();
    let handler: ((gateway: Key) => void) | undefined;
    const dataPlane = new TunnelDataPlane({
      inner: createEmbeddedDataPlane({
        bind: { address: ADDRESS },
        workers,
        ...hooks,
        trustedHops: { clientHeader: "cf-connecting-ip" },
      }),
      link: tunnels,
      address: ADDRESS,
      firstPort: settings.firstPort,
      certificate: await makeOriginCertificate(ADDRESS, host.now()),
      onTunnel: (gateway, state) => {
        const key = keyOf(gateway);
        states.set(key, state);
        handler?.(key);
      },
    });
    return {
      dataPlane,
      place: "tunnels",
      infrastructureOf: (gateway) => tunnelFact(states.get(gateway)),
      onInfrastructure: (given) => {
        handler = given;
      },
      removed: (gateway) => {
        states.delete(gateway);
        if (!settings.deleteWithGateway) return;
        const { namespace, name } = partsOf(gateway);
        void tunnels.delete(`${namespace}/${name}`).then((problem) => {
          if (problem !== undefined)
            logger.warn(`the tunnel of ${gateway} is still there: ${problem.message}`);
        });
      },
    };
  };
}

function connectorOf(
  { cloudflared, connections, waits }: TunnelSettings,
  { env }: Host,
): ManagedTunnelsOptions["connector"] {
  return {
    command: cloudflared,
    env,
    ...(connections === undefined ? {} : { connections }),
    ...(waits?.pollMs === undefined ? {} : { pollMs: waits.pollMs }),
  };
}

/** A namespace has no dots, so no two Gateways meet in one name. */
export function tunnelName(prefix: string, gateway: string): string {
  return `${prefix}.${gateway.replace("/", ".")}`;
}

function keyOf(gateway: string): Key {
  const [namespace = "", name = ""] = gateway.split("/");
  return keyFor("Gateway", namespace, name);
}

function required(host: Host, name: string): string {
  const value = host.env[name];
  if (value) return value;
  throw new CannotRun(
    `${name} is not set`,
    "See docs/guides/cloudflare-tunnel.md for the account and the token that it takes.",
  );
}
