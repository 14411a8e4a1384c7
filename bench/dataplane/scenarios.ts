import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Contestant } from "./contestants.ts";
import { GRPC_SERVICE, HOT_TENANTS, HTTP_ROUTES, hostOf, prefixOf } from "./world.ts";

export interface Scenario {
  readonly protocol: "HTTP/1.1" | "HTTPS keep-alive" | "full handshakes" | "HTTP/2" | "gRPC";
  readonly size: "100 B" | "16 KiB";
  readonly connections: number;
}

/** What this issue promises against Envoy; the rest is as high as can be. */
export const BARS: ReadonlySet<Scenario["protocol"]> = new Set(["HTTP/1.1", "HTTPS keep-alive", "HTTP/2"]);

export const SCENARIOS: readonly Scenario[] = (
  ["HTTP/1.1", "HTTPS keep-alive", "HTTP/2", "gRPC", "full handshakes"] as const
).flatMap((protocol) =>
  (protocol === "full handshakes" ? (["100 B"] as const) : (["100 B", "16 KiB"] as const)).flatMap((size) =>
    [32, 256].map((connections) => ({ protocol, size, connections })),
  ),
);

/** Clients over TLS are one process per tenant, each with its share of the connections. */
const TLS_CLIENTS = 8;
const STREAMS = 4;

/** Commands that together make the load, for that many seconds. */
export function commandsFor(
  { protocol, size, connections }: Scenario,
  { http, tls }: Contestant,
  place: { readonly folder: string; readonly seconds: number },
): readonly (readonly string[])[] {
  const { folder, seconds } = place;
  const end = size === "100 B" ? "small" : "large";
  if (protocol === "HTTP/1.1") {
    const script = join(folder, `${end}.lua`);
    writeFileSync(script, rotatingHosts(end));
    return [["wrk", "-t1", `-c${connections}`, `-d${seconds}s`, "-s", script, `http://127.0.0.1:${http}`]];
  }
  if (protocol === "full handshakes") {
    const client = new URL("./handshakes.ts", import.meta.url).pathname;
    return [[process.execPath, client, String(tls), String(connections), String(seconds)]];
  }
  const each = ["h2load", `-c${connections / TLS_CLIENTS}`, `-D${seconds}`, `--connect-to=127.0.0.1:${tls}`];
  const mode = protocol === "HTTPS keep-alive" ? ["--h1"] : [`-m${STREAMS}`];
  return Array.from({ length: TLS_CLIENTS }, (_, client) => {
    const origin = `https://${hostOf(client * 300)}:${tls}`;
    if (protocol !== "gRPC") {
      return [...each, ...mode, ...paths().map((path) => `${origin}${path}/${end}`)];
    }
    const body = join(folder, "message.bin");
    writeFileSync(body, Buffer.from([0, 0, 0, 0, 3, 1, 2, 3]));
    const headers = ["-H", "content-type: application/grpc", "-H", "te: trailers", "-d", body];
    return [...each, ...mode, ...headers, `${origin}/${GRPC_SERVICE}/${end === "small" ? "Small" : "Large"}`];
  });
}

/** What the tools complain of; undefined if all went well. */
export function complaintIn(output: string): string | undefined {
  const wrk = /Non-2xx or 3xx responses: \d+|Socket errors: .*/.exec(output)?.[0];
  const own = /failures: \d+/.exec(output)?.[0];
  const [, failed = "0", errored = "0"] = /(\d+) failed, (\d+) errored/.exec(output) ?? [];
  const [, redirected = "0", refused = "0", broken = "0"] =
    /status codes: \d+ 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx/.exec(output) ?? [];
  const h2load = Number(failed) + Number(errored) + Number(redirected) + Number(refused) + Number(broken);
  return wrk ?? own ?? (h2load > 0 ? `h2load: ${h2load} failed` : undefined);
}

function paths(): readonly string[] {
  return Array.from({ length: HTTP_ROUTES }, (_, route) => prefixOf(route));
}

/** Ten header fields, as a browser sends them; hosts and paths change with every request. */
function rotatingHosts(end: string): string {
  const fields = [
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "Accept-Language: en-GB,en;q=0.5",
    "Accept-Encoding: gzip, deflate",
    "Referer: http://example.com/some/page",
    "Cookie: session=0123456789abcdef0123456789abcdef",
    "Cache-Control: no-cache",
    "Pragma: no-cache",
    "Priority: u=0, i",
  ];
  return `local requests, at = {}, 0
function init()
  for n = 0, ${HOT_TENANTS * HTTP_ROUTES - 1} do
    local tenant = (n * 37 % ${HOT_TENANTS}) * ${10}
    requests[n] = "GET /path-" .. (n % ${HTTP_ROUTES}) .. "/${end} HTTP/1.1\\r\\nHost: tenant-" .. tenant .. ".test\\r\\n${fields.join("\\r\\n")}\\r\\n\\r\\n"
  end
end
function request()
  at = (at + 1) % ${HOT_TENANTS * HTTP_ROUTES}
  return requests[at]
end
`;
}
