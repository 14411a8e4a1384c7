/** What Envoy itself counts without any cost per tenant: requests, connections, TLS handshakes. */

export interface EnvoyReading {
  /** Requests that are over, since Envoy started. */
  readonly ended: number;
  readonly connections: number;
  /** Completed TLS handshakes. */
  readonly handshakes: number;
  /** Connections at this moment. */
  readonly open: number;
}

const FILTER =
  "^(http.https?.downstream_rq_(total|active)|listener.port.(downstream_cx_(total|active)|ssl.handshake))$";

export async function readEnvoy(
  ask: (method: "GET", path: string) => Promise<string>,
): Promise<EnvoyReading> {
  const text = await ask("GET", `/stats?filter=${encodeURIComponent(FILTER)}`);
  const stats = new Map<string, number>();
  for (const [, name = "", value] of text.matchAll(/^(\S+): (\d+)$/gm)) stats.set(name, Number(value));
  if (stats.size === 0) throw new Error("Envoy tells nothing");
  const sum = (...names: readonly string[]): number =>
    names.reduce((total, name) => total + (stats.get(name) ?? 0), 0);
  return {
    ended:
      sum("http.http.downstream_rq_total", "http.https.downstream_rq_total") -
      sum("http.http.downstream_rq_active", "http.https.downstream_rq_active"),
    connections: sum("listener.port.downstream_cx_total"),
    handshakes: sum("listener.port.ssl.handshake"),
    open: sum("listener.port.downstream_cx_active"),
  };
}

/** What has happened between two readings; a new Envoy begins at 0. */
export function since(before: EnvoyReading, now: EnvoyReading): Omit<EnvoyReading, "open"> {
  const isNew = now.connections < before.connections || now.ended < before.ended;
  const grown = (of: "ended" | "connections" | "handshakes"): number =>
    Math.max(0, now[of] - (isNew ? 0 : before[of]));
  return { ended: grown("ended"), connections: grown("connections"), handshakes: grown("handshakes") };
}
