/**
 * The agent's side of Envoy's external authorization: one call of a gRPC method for each request
 * that has authentication guards. Any failure here is an error to Envoy, which answers 503.
 */
import type { ServerHttp2Stream } from "node:http2";
import type { Authenticator } from "../authentication/authenticator.ts";
import { type AuthenticationRequest, UNUSABLE } from "../authentication/foundation/decision.ts";
import { asText, bytesOf } from "../authentication/foundation/field-bytes.ts";
import { withoutParameters } from "../authentication/query.ts";
import { type CheckRequest, denyResponse, passResponse, readCheckRequest } from "./messages/authorization.ts";
import { frame, GrpcFrameReader } from "./wire/grpc-frames.ts";
import type { Message } from "./wire/protobuf.ts";

export const CHECK_METHOD = "/envoy.service.auth.v3.Authorization/Check";

const LARGEST_REQUEST = 4 * 1024 * 1024;
const INTERNAL = 13;

export function serveCheck(stream: ServerHttp2Stream, authenticator: Authenticator): void {
  const gone = new AbortController();
  const reader = new GrpcFrameReader(LARGEST_REQUEST);
  stream.on("close", () => gone.abort());
  stream.on("data", (chunk: Buffer) => {
    try {
      const [bytes] = reader.push(chunk);
      if (bytes === undefined) return;
      answer(authenticator, readCheckRequest(bytes), gone.signal).then(
        (response) => respond(stream, response),
        () => fail(stream),
      );
    } catch {
      fail(stream);
    }
  });
}

async function answer(
  authenticator: Authenticator,
  check: CheckRequest,
  signal: AbortSignal,
): Promise<Message> {
  // A request of a route without guards is not asked about; whoever asks all the same gets no.
  const request = requestOf(check);
  const outcome =
    check.guards.length === 0 ? UNUSABLE : await authenticator.check(check.guards, request, signal);
  if (!outcome.allowed)
    return denyResponse({ ...outcome, headers: fieldsOf(outcome.headers), body: textOf(outcome.body) });
  const { set, hides, hiddenQueries, answer: forClient } = outcome;
  return passResponse({
    set: [...fieldsOf(set), ...pathWithout(request, hiddenQueries)],
    remove: [...check.headers.keys()].filter((name) => hides(name) && !set.has(name)),
    answer: fieldsOf(forClient),
  });
}

/** Envoy itself would sort the other parameters, and would not know an escaped name. */
function pathWithout(
  { path, query }: AuthenticationRequest,
  names: readonly string[],
): readonly (readonly [string, string])[] {
  const rest = withoutParameters(query, names);
  if (rest === query) return [];
  return [[":path", rest === "" ? path : `${path}?${rest}`]];
}

function requestOf({
  method,
  host,
  path,
  headers,
  body,
  peer,
  protocol,
}: CheckRequest): AuthenticationRequest {
  const at = path.indexOf("?");
  return {
    method,
    authority: host,
    path: at < 0 ? path : path.slice(0, at),
    query: at < 0 ? "" : path.slice(at + 1),
    headers: new Map(Array.from(headers, ([name, value]) => [name, bytesOf(value)])),
    ...(body === undefined ? {} : { body }),
    ...(peer === "" ? {} : { peer }),
    ...(protocol === "" ? {} : { protocol }),
  };
}

function fieldsOf(fields: Iterable<readonly [string, string]>): readonly (readonly [string, string])[] {
  return Array.from(fields, ([name, value]) => [name, asText(value)]);
}

function textOf(body: Uint8Array | string): string {
  return typeof body === "string" ? body : Buffer.from(body).toString("utf8");
}

function respond(stream: ServerHttp2Stream, response: Message): void {
  if (stream.destroyed) return;
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
  stream.on("wantTrailers", () => {
    if (!stream.destroyed) stream.sendTrailers({ "grpc-status": 0 });
  });
  stream.end(frame(response));
}

function fail(stream: ServerHttp2Stream): void {
  if (stream.destroyed || stream.headersSent) return;
  stream.respond(
    { ":status": 200, "content-type": "application/grpc", "grpc-status": INTERNAL },
    { endStream: true },
  );
}
