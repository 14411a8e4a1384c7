/**
 * Fields that must be known before a body is read: framing, routing, conditions and other modifiers
 * of a request, authentication, the format of the content (RFC 9110, 6.5.1). Behind a body they
 * could change what the next reader makes of a message that has been judged by its head, so no data
 * plane passes them on there.
 */
export const headOnlyFields: readonly string[] = [
  "authorization",
  "cache-control",
  "content-encoding",
  "content-length",
  "content-range",
  "content-type",
  "cookie",
  "expect",
  "host",
  "if-match",
  "if-modified-since",
  "if-none-match",
  "if-range",
  "if-unmodified-since",
  "max-forwards",
  "pragma",
  "range",
  "set-cookie",
  "www-authenticate",
];
