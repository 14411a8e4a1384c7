/**
 * How a connector hands a request to the origin, and the answer back: HTTP/1.1, or HTTP/2 over TLS
 * where the rule says so.
 */
import { type IncomingMessage, request as requestHttp } from "node:http";
import { connect, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import { request as requestHttps } from "node:https";
import type { IngressRule } from "../../../../src/dataplanes/tunnel/cloudflare/tunnel-configuration.ts";

export interface Forwarding {
  readonly rule: IngressRule;
  readonly websocket: boolean;
}

export function forwardToOrigin(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  { rule, websocket }: Forwarding,
): void {
  const fixed = /^http_status:(\d+)$/.exec(rule.service)?.[1];
  if (fixed !== undefined) {
    stream.respond(head(Number(fixed), [], "cloudflared"), { endStream: true });
    return;
  }
  const url = new URL(rule.service);
  const insecure = rule.originRequest?.["noTLSVerify"] === true;
  if (url.protocol === "https:" && rule.originRequest?.["http2Origin"] === true && !websocket) {
    overHttp2(stream, headers, url, insecure);
  } else overHttp1(stream, headers, { url, insecure, websocket });
}

function overHttp1(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  { url, insecure, websocket }: { url: URL; insecure: boolean; websocket: boolean },
): void {
  const send = url.protocol === "https:" ? requestHttps : requestHttp;
  const request = send({
    host: url.hostname,
    port: url.port,
    method: String(headers[":method"]),
    path: String(headers[":path"]),
    headers: {
      ...plain(headers),
      host: String(headers[":authority"]),
      ...(websocket ? { connection: "Upgrade", upgrade: "websocket" } : {}),
    },
    rejectUnauthorized: !insecure,
    agent: false,
  });
  request.on("error", () => failed(stream));
  request.on("upgrade", (response, socket) => {
    stream.respond(head(200, pairs(response), "origin"));
    socket.on("error", () => stream.close());
    socket.pipe(stream).pipe(socket);
  });
  request.on("response", (response) => {
    stream.respond(head(response.statusCode ?? 502, pairs(response), "origin"));
    response.pipe(stream);
  });
  if (websocket) request.end();
  else stream.pipe(request);
}

function overHttp2(
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  url: URL,
  insecure: boolean,
): void {
  const session = connect(url.origin, { rejectUnauthorized: !insecure });
  session.on("error", () => failed(stream));
  const request = session.request({
    ...plain(headers),
    ":method": String(headers[":method"]),
    ":path": String(headers[":path"]),
    ":authority": String(headers[":authority"]),
  });
  request.on("error", () => failed(stream));
  request.on("response", (received) => {
    const { ":status": status, ...rest } = received;
    const list = Object.entries(rest).flatMap(([name, value]) =>
      [value ?? ""].flat().map((one) => [name, one] as const),
    );
    stream.respond(head(Number(status), list, "origin"), { waitForTrailers: true });
    let trailers: IncomingHttpHeaders = {};
    request.on("trailers", (found) => {
      trailers = found;
    });
    stream.on("wantTrailers", () => stream.sendTrailers({ ...trailers }));
    request.pipe(stream);
  });
  request.on("close", () => session.close());
  stream.pipe(request);
}

function failed(stream: ServerHttp2Stream): void {
  if (stream.headersSent || stream.destroyed) stream.close();
  else stream.respond(head(502, [], "cloudflared"), { endStream: true });
}

function plain(headers: IncomingHttpHeaders): Record<string, string | string[]> {
  const kept = Object.entries(headers).filter(
    ([name, value]) => value !== undefined && !name.startsWith(":") && !name.startsWith("cf-cloudflared-"),
  );
  return Object.fromEntries(kept) as Record<string, string | string[]>;
}

function pairs({ rawHeaders }: IncomingMessage): readonly (readonly [string, string])[] {
  return Array.from({ length: rawHeaders.length / 2 }, (_, index) => [
    rawHeaders[2 * index] ?? "",
    rawHeaders[2 * index + 1] ?? "",
  ]);
}

function head(
  status: number,
  fields: readonly (readonly [string, string])[],
  source: string,
): Record<string, string | number> {
  const encode = (text: string): string => Buffer.from(text).toString("base64").replace(/=+$/, "");
  return {
    ":status": status,
    "cf-cloudflared-response-headers": fields
      .map(([name, value]) => `${encode(name)}:${encode(value)}`)
      .join(";"),
    "cf-cloudflared-response-meta": JSON.stringify({ src: source }),
  };
}
