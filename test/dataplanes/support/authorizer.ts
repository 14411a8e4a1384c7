/** An authorizer that speaks Envoy's protocol over gRPC, and can speak it badly. */
import { createServer, type ServerHttp2Stream } from "node:http2";
import type { Server } from "node:net";
import { frame, GrpcFrameReader } from "../../../src/dataplanes/envoy/wire/grpc-frames.ts";
import * as proto from "../../../src/dataplanes/envoy/wire/proto.ts";
import {
  type EnumValue,
  enumValue,
  flag,
  type Message,
  message,
  nested,
  nestedEach,
  read,
  text,
  texts,
  uint,
} from "../../../src/dataplanes/envoy/wire/protobuf.ts";

/** What it was asked. */
export interface Question {
  readonly method: string;
  readonly host: string;
  readonly path: string;
  readonly scheme: string;
  readonly protocol: string;
  readonly peer: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly rawBody: string;
}

type Fields = readonly (readonly [name: string, value: string, append?: boolean])[];

export interface Yes {
  readonly headers?: Fields;
  readonly remove?: readonly string[];
  readonly removeQueries?: readonly string[];
  readonly setQueries?: readonly string[];
  readonly answer?: Fields;
}

export interface No {
  readonly status?: number;
  readonly headers?: Fields;
  readonly body?: string;
}

export function yes(ok?: Yes): Message<proto.CheckResponse> {
  const shape =
    ok &&
    message(
      nestedEach(proto.OkHttpResponse.headers, (ok.headers ?? []).map(option)),
      texts(proto.OkHttpResponse.headersToRemove, ok.remove ?? []),
      texts(proto.OkHttpResponse.queryParametersToRemove, ok.removeQueries ?? []),
      nestedEach(
        proto.OkHttpResponse.queryParametersToSet,
        (ok.setQueries ?? []).map((key) => message(text(proto.QueryParameter.key, key))),
      ),
      nestedEach(proto.OkHttpResponse.responseHeadersToAdd, (ok.answer ?? []).map(option)),
    );
  return message(
    nested(proto.CheckResponse.status, message()),
    nested(proto.CheckResponse.okResponse, shape),
  );
}

export function no({ status, headers = [], body }: No = {}, code = 7): Message<proto.CheckResponse> {
  const denied = message(
    nested(
      proto.DeniedHttpResponse.status,
      status === undefined
        ? undefined
        : message(enumValue(proto.HttpStatus.code, status as EnumValue<proto.StatusCode>)),
    ),
    nestedEach(proto.DeniedHttpResponse.headers, headers.map(option)),
    text(proto.DeniedHttpResponse.body, body),
  );
  return message(
    nested(proto.CheckResponse.status, message(uint(proto.Status.code, code))),
    nested(proto.CheckResponse.deniedResponse, denied),
  );
}

function option([name, value, append = false]: Fields[number]): Message<proto.HeaderValueOption> {
  return message(
    nested(
      proto.HeaderValueOption.header,
      message(text(proto.HeaderValue.key, name), text(proto.HeaderValue.value, value)),
    ),
    nested(proto.HeaderValueOption.append, message(flag(proto.BoolValue.value, append))),
  );
}

/** `answer` has the stream to itself if it returns nothing. */
export function authorizer(
  answer: (question: Question, stream: ServerHttp2Stream) => Uint8Array | undefined,
): Server {
  const server = createServer();
  server.on("sessionError", () => {});
  server.on("stream", (stream, head) => {
    stream.on("error", () => {});
    const reader = new GrpcFrameReader(4 * 1024 * 1024);
    stream.on("data", (chunk: Buffer) => {
      const [bytes] = reader.push(chunk);
      if (bytes === undefined) return;
      const said = head[":path"]?.endsWith("Authorization/Check") ? answer(questionOf(bytes), stream) : no();
      if (said !== undefined) respond(stream, said);
    });
  });
  return server;
}

export function respond(stream: ServerHttp2Stream, said: Uint8Array, status = 0): void {
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": status }));
  stream.end(frame(said));
}

function questionOf(bytes: Uint8Array): Question {
  const attributes = read<proto.CheckRequest>(bytes).message(proto.CheckRequest.attributes);
  const http = attributes
    ?.message(proto.AttributeContext.request)
    ?.message(proto.AttributeContextRequest.http);
  const peer = attributes
    ?.message(proto.AttributeContext.source)
    ?.message(proto.AttributeContextPeer.address)
    ?.message(proto.Address.socketAddress);
  const { AttributeContextHttpRequest: fields } = proto;
  return {
    method: http?.text(fields.method) ?? "",
    host: http?.text(fields.host) ?? "",
    path: http?.text(fields.path) ?? "",
    scheme: http?.text(fields.scheme) ?? "",
    protocol: http?.text(fields.protocol) ?? "",
    peer: peer?.text(proto.SocketAddress.address) ?? "",
    headers: Object.fromEntries(http?.textMap(fields.headers) ?? []),
    body: http?.text(fields.body) ?? "",
    rawBody: Buffer.from(http?.bytes(fields.rawBody) ?? []).toString("hex"),
  };
}
