/** Limits of what clients send with a request. */

/**
 * The body of a request, counted as it comes; a longer one is 413. Where the header announces the
 * length, nothing of the body reaches a backend. Otherwise the backend gets no more than the limit,
 * and never the end. Bytes of an upgraded connection are no body.
 */
export interface RequestBodyCheck {
  readonly type: "requestBody";
  /** 0: no body at all. */
  readonly maxBytes: number;
}
