/**
 * How many connections to the edge a connector of this machine says it has, at its metrics address.
 * Undefined when the connector does not answer: it is starting or ending, and the process itself
 * tells more.
 */
export async function readyConnections(port: number, signal: AbortSignal): Promise<number | undefined> {
  try {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(2_000)]);
    const response = await fetch(`http://127.0.0.1:${port}/ready`, { signal: limit });
    const body = (await response.json()) as { readonly readyConnections?: unknown };
    return typeof body.readyConnections === "number" ? body.readyConnections : undefined;
  } catch {
    return undefined;
  }
}
