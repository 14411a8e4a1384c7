/**
 * Fields of one connection, which no data plane passes on (RFC 9110, 7.6.1), beside those that
 * `Connection` names.
 */
export const hopByHopFields: readonly string[] = [
  "connection",
  "http2-settings",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];
