/** One curl line for every hostname that `explain` finds a backend for. */
import { explainRequest } from "../../matching/explain/explain.ts";
import type { RoutingTable } from "../../matching/routing-table.ts";
import type { HostItem, ListenerItem } from "../../plan/plan.ts";

export interface CurlOptions {
  readonly address: string;
  readonly portOffset: number;
  /** PEM file of the CA that signed the certificates. */
  readonly authority: string;
}

export function curlLines(table: RoutingTable, options: CurlOptions): string[] {
  const lines: string[] = [];
  for (const port of table.ports()) {
    if (port.protocol !== "http" && port.protocol !== "tls") continue;
    for (const listener of table.listenersOf(port.id)) {
      if (listener.protocol !== "HTTP" && listener.protocol !== "HTTPS") continue;
      for (const host of table.hostsOf(listener.id)) {
        const path = answeringPath(table, port.port, listener, host);
        if (path === undefined) continue;
        lines.push(curlLine({ ...options, listener, port: port.port, host: nameFor(host.hostname), path }));
      }
    }
  }
  return lines.sort();
}

function answeringPath(
  table: RoutingTable,
  port: number,
  listener: ListenerItem,
  host: HostItem,
): string | undefined {
  const scheme = listener.protocol === "HTTPS" ? "https" : "http";
  const paths = host.rules.map(({ match }) =>
    match.path?.type === "regex" ? "/" : (match.path?.value ?? "/"),
  );
  return paths.find((path) => {
    const { outcome } = explainRequest(table, {
      port,
      gateway: listener.gateway,
      scheme,
      authority: nameFor(host.hostname),
      method: "GET",
      path,
      query: "",
      headers: [],
    });
    return outcome === "forward";
  });
}

/** A name that the pattern matches. */
function nameFor(pattern: string): string {
  if (pattern === "") return "anything.example.org";
  return pattern.startsWith("*.") ? `some${pattern.slice(1)}` : pattern;
}

interface Line extends CurlOptions {
  readonly listener: ListenerItem;
  readonly port: number;
  readonly host: string;
  readonly path: string;
}

function curlLine({ listener, port, host, path, address, portOffset, authority }: Line): string {
  const opened = port + portOffset;
  const resolve = `--resolve ${host}:${opened}:${address}`;
  return listener.protocol === "HTTPS"
    ? `curl ${resolve} --cacert ${shellWord(authority)} https://${host}:${opened}${path}`
    : `curl ${resolve} http://${host}:${opened}${path}`;
}

function shellWord(text: string): string {
  return /^[A-Za-z0-9_/.:@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
