import { errorCode } from "./protocol.ts";

/**
 * The code with which a client's stream is reset after the backend has reset its own. A code about
 * the request is passed on. A code about the backend's connection, or one that would make an
 * incomplete response look complete (NO_ERROR), becomes INTERNAL_ERROR.
 */
export function codeForClient(code: number | undefined): number {
  const tells =
    code === errorCode.cancel || code === errorCode.refusedStream || code === errorCode.enhanceYourCalm;
  return tells ? code : errorCode.internalError;
}

/**
 * The gRPC status that a client derives from a reset code ("gRPC over HTTP2", HTTP2 Transport
 * Mapping).
 */
export function grpcStatusOf(code: number): number {
  switch (code) {
    case errorCode.refusedStream:
      return 14;
    case errorCode.cancel:
      return 1;
    case errorCode.enhanceYourCalm:
      return 8;
    case errorCode.inadequateSecurity:
      return 7;
    default:
      return 13;
  }
}
