/**
 * Bodies that are counted by the program beside Envoy: an external processor, which gets the body
 * of a request piece by piece and says of each whether it may go on
 * (envoy.extensions.filters.http.ext_proc.v3, envoy.service.ext_proc.v3).
 */

import * as proto from "../wire/proto.ts";
import {
  bytes,
  type EncodedField,
  type EnumValue,
  enumValue,
  type Message,
  message,
  nested,
  read,
  text,
} from "../wire/protobuf.ts";
import { any, duration } from "./core.ts";
import { httpFilter } from "./http-filters.ts";

const EXTERNAL_PROCESSOR = "envoy.extensions.filters.http.ext_proc.v3.ExternalProcessor";
const PER_ROUTE = "envoy.extensions.filters.http.ext_proc.v3.ExtProcPerRoute";
/** The program may be busy; without its word nothing goes on. */
const ANSWER_MS = 30_000;

export const COUNT_METHOD = "/envoy.service.ext_proc.v3.ExternalProcessor/Process";
/** Metadata of a stream: the limit of the request's route, in bytes. */
export const LIMIT_FIELD = "mergeway-max-body";

/** Does nothing unless a route has a limit. `cluster`: of the program. */
export function bodyCountFilter(name: string, cluster: string): Message<proto.HttpFilter> {
  const config = message(
    nested(proto.ExternalProcessor.grpcService, message(service(cluster))),
    nested(proto.ExternalProcessor.processingMode, modes()),
    duration(proto.ExternalProcessor.messageTimeout, ANSWER_MS),
    text(proto.ExternalProcessor.statPrefix, "bodies"),
  );
  return httpFilter(name, EXTERNAL_PROCESSOR, config);
}

export function routeBodyCount(cluster: string, maxBytes: number): Message<proto.Any> {
  const limit = message(
    text(proto.HeaderValue.key, LIMIT_FIELD),
    text(proto.HeaderValue.value, String(maxBytes)),
  );
  const overrides = message(
    nested(proto.ExtProcOverrides.processingMode, modes(proto.BodySendMode.STREAMED)),
    nested(
      proto.ExtProcOverrides.grpcService,
      message(service(cluster), nested(proto.GrpcService.initialMetadata, limit)),
    ),
  );
  return any(PER_ROUTE, message(nested(proto.ExtProcPerRoute.overrides, overrides)));
}

function service(cluster: string): EncodedField<proto.GrpcService> {
  return nested(proto.GrpcService.envoyGrpc, message(text(proto.EnvoyGrpc.clusterName, cluster)));
}

function modes(requestBody?: EnumValue<proto.BodySendMode>): Message<proto.ProcessingMode> {
  const { SKIP } = proto.HeaderSendMode;
  return message(
    enumValue(proto.ProcessingMode.requestHeaderMode, SKIP),
    enumValue(proto.ProcessingMode.responseHeaderMode, SKIP),
    enumValue(proto.ProcessingMode.requestBodyMode, requestBody),
    enumValue(proto.ProcessingMode.requestTrailerMode, SKIP),
    enumValue(proto.ProcessingMode.responseTrailerMode, SKIP),
  );
}

/** How many bytes of a body a message of Envoy has; undefined: it has something else. */
export function readBodyPiece(piece: Uint8Array): number | undefined {
  const body = read<proto.ProcessingRequest>(piece).message(proto.ProcessingRequest.requestBody);
  return body?.bytes(proto.HttpBody.body)?.length ?? (body === undefined ? undefined : 0);
}

/** The piece goes on. */
export const goesOn: Message<proto.ProcessingResponse> = message(
  nested(proto.ProcessingResponse.requestBody, message()),
);

/** What Envoy's response code details call it. */
export const BODY_TOO_LARGE = "body_too_large";

/** The request is answered with 413. */
export const answerTooLarge: Message<proto.ProcessingResponse> = message(
  nested(
    proto.ProcessingResponse.immediateResponse,
    message(
      nested(
        proto.ImmediateResponse.status,
        message(enumValue(proto.HttpStatus.code, proto.StatusCode.PayloadTooLarge)),
      ),
      bytes(proto.ImmediateResponse.body, Buffer.from("the request body is too large\n")),
      text(proto.ImmediateResponse.details, BODY_TOO_LARGE),
    ),
  ),
);
