import type { CorsPolicy } from "../../../../plan/rule.ts";
import { any, boolValue, exactMatcher, regexMatcher } from "../../messages/core.ts";
import { type Message, message, nestedEach, text } from "../../wire/protobuf.ts";

/** The configuration of the CORS filter for one route. */
export function corsPolicy(policy: CorsPolicy): Message {
  const config = message(
    nestedEach(1, policy.allowOrigins.map(originMatcher)),
    text(2, policy.allowMethods.join(", ")),
    text(3, policy.allowHeaders.join(", ")),
    text(4, policy.exposeHeaders.join(", ")),
    text(5, String(policy.maxAgeSeconds)),
    boolValue(6, policy.allowCredentials),
    boolValue(10, false),
  );
  return any("envoy.extensions.filters.http.cors.v3.CorsPolicy", config);
}

function originMatcher(origin: string): Message {
  if (origin === "*") return regexMatcher(".*");
  if (!origin.includes("*")) return exactMatcher(origin);
  const pattern = origin
    .split("*")
    .map((part) => part.replace(/[\\^$.+?()[\]{}|]/g, "\\$&"))
    .join("[A-Za-z0-9.-]+");
  return regexMatcher(pattern);
}
