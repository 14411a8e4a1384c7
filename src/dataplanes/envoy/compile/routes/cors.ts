import type { CorsPolicy } from "../../../../plan/rule.ts";
import { any, boolValue, exactMatcher, regexMatcher } from "../../messages/core.ts";
import * as proto from "../../wire/proto.ts";
import { type Message, message, nestedEach, text } from "../../wire/protobuf.ts";

/** The configuration of the CORS filter for one route. */
export function corsPolicy(policy: CorsPolicy): Message<proto.Any> {
  const config = message(
    nestedEach(proto.CorsPolicy.allowOriginStringMatch, policy.allowOrigins.map(originMatcher)),
    text(proto.CorsPolicy.allowMethods, policy.allowMethods.join(", ")),
    text(proto.CorsPolicy.allowHeaders, policy.allowHeaders.join(", ")),
    text(proto.CorsPolicy.exposeHeaders, policy.exposeHeaders.join(", ")),
    text(proto.CorsPolicy.maxAge, String(policy.maxAgeSeconds)),
    boolValue(proto.CorsPolicy.allowCredentials, policy.allowCredentials),
    boolValue(proto.CorsPolicy.forwardNotMatchingPreflights, false),
  );
  return any("envoy.extensions.filters.http.cors.v3.CorsPolicy", config);
}

function originMatcher(origin: string): Message<proto.StringMatcher> {
  if (origin === "*") return regexMatcher(".*");
  if (!origin.includes("*")) return exactMatcher(origin);
  const pattern = origin
    .split("*")
    .map((part) => part.replace(/[\\^$.+?()[\]{}|]/g, "\\$&"))
    .join("[A-Za-z0-9.-]+");
  return regexMatcher(pattern);
}
