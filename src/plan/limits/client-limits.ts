/**
 * What a port allows each of its clients. What is absent is the data plane's own. How the bytes of
 * a header are counted differs a little between data planes, and between versions of HTTP.
 */
export interface ClientLimits {
  /** Of a request's header; a larger one is 431. */
  readonly headerBytes?: number;
  /** Fields of a request's header; more are 431. */
  readonly headerCount?: number;
  /** From the first byte of a request to the end of its header; then the connection is closed. */
  readonly headerTimeoutMs?: number;
  /** Of a connection without a request. */
  readonly idleMs?: number;
  /** Of one HTTP/2 connection, at the same time. */
  readonly concurrentStreams?: number;
}
