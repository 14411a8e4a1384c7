/**
 * Where a tunnel, its token and its configuration come from: the API, by name or by id, or nothing
 * but a token that somebody has made.
 */
import { ApiFailure } from "./api-failure.ts";
import type { CloudflareApi, ConfigurationResult } from "./cloudflare-api.ts";
import type { Credential } from "./credential.ts";
import type { Origin } from "./tunnel-configuration.ts";

export interface TunnelProvider {
  /** Its id. */
  tunnel(): Promise<string>;
  /** Undefined where the configuration is not ours to write. */
  configure(tunnel: string, origin: Origin): Promise<ConfigurationResult | undefined>;
  token(tunnel: string): Promise<Credential>;
}

/**
 * The tunnel of that name, created if there is none. A tunnel that has connections and is not known
 * to be ours is rejected: another cluster may have a Gateway of the same name, and clients would
 * reach either one at random.
 */
export function tunnelByName(
  api: CloudflareApi,
  name: string,
  isOurs: (id: string) => boolean = () => true,
): TunnelProvider {
  return {
    ...throughApi(api),
    tunnel: async () => {
      const { id } = await api.findOrCreate(name);
      if (!isOurs(id) && (await api.health(id)).connections > 0) throw inUse(name);
      return id;
    },
  };
}

function inUse(name: string): ApiFailure {
  const message = `the tunnel ${name} is in use elsewhere; give the Gateway a tunnel of its own name`;
  return new ApiFailure({ reason: "TunnelInUse", message }, { passing: false });
}

/** A tunnel that is there already. */
export function tunnelById(api: CloudflareApi, id: string): TunnelProvider {
  return {
    ...throughApi(api),
    tunnel: async () => {
      await api.health(id);
      return id;
    },
  };
}

/** A token names its tunnel. The tunnel's configuration is not ours. */
export function tunnelByToken(token: Credential): TunnelProvider {
  return {
    tunnel: async () => tunnelOfToken(token),
    configure: async () => undefined,
    token: async () => token,
  };
}

function throughApi(api: CloudflareApi): Omit<TunnelProvider, "tunnel"> {
  return {
    configure: (tunnel, origin) => api.configure(tunnel, origin),
    token: (tunnel) => api.token(tunnel),
  };
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Nothing that a parser says is repeated: it may quote what it read. */
function tunnelOfToken(token: Credential): string {
  const id = readTunnel(token.reveal());
  if (id !== undefined && UUID.test(id)) return id.toLowerCase();
  const message = "the tunnel token is not one that Cloudflare has made";
  throw new ApiFailure({ reason: "InvalidCredentials", message }, { passing: false });
}

function readTunnel(text: string): string | undefined {
  try {
    const content = JSON.parse(Buffer.from(text, "base64").toString()) as { readonly t?: unknown } | null;
    return typeof content?.t === "string" ? content.t : undefined;
  } catch {
    return undefined;
  }
}
