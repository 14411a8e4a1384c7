import { errorCode } from "./protocol.ts";

/**
 * The code for a client's stream whose backend has reset its own. What tells the client something
 * about its request is passed on; what is about the backend's connection, or would make half an
 * answer look whole (NO_ERROR), is INTERNAL_ERROR.
 */
export function codeForClient(code: number | undefined): number {
  const tells =
    code === errorCode.cancel || code === errorCode.refusedStream || code === errorCode.enhanceYourCalm;
  return tells ? code : errorCode.internalError;
}

/**
 * gRPC over HTTP2, "HTTP2 Transport Mapping": what a client of gRPC would make of the code if it
 * saw it.
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
