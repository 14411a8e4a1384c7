/**
 * Sessions that stay on their endpoint (envoy.extensions.filters.http.stateful_session.v3). The
 * filter stands in every port and does nothing until a route configures it. Envoy looks the
 * address that a client sends up among the endpoints of the cluster, and balances as always if it
 * is not there.
 */

import type { PersistencePolicy } from "../../../plan/rule.ts";
import * as proto from "../wire/proto.ts";
import { type Message, message, nested, text } from "../wire/protobuf.ts";
import { any, duration, extension } from "./core.ts";
import { httpFilter } from "./http-filters.ts";

const FILTER = "envoy.extensions.filters.http.stateful_session.v3.StatefulSession";
const STATES = "envoy.extensions.http.stateful_session";

export function sessionFilter(name: string): Message<proto.HttpFilter> {
  return httpFilter(name, FILTER, message());
}

export function routeSessions(policy: PersistencePolicy, isSecure: boolean): Message<proto.Any> {
  const sessions = message(nested(proto.StatefulSession.sessionState, sessionState(policy, isSecure)));
  const perRoute = message(nested(proto.StatefulSessionPerRoute.statefulSession, sessions));
  return any("envoy.extensions.filters.http.stateful_session.v3.StatefulSessionPerRoute", perRoute);
}

function sessionState(
  { type, name, absoluteTimeoutMs }: PersistencePolicy,
  isSecure: boolean,
): Message<proto.TypedExtensionConfig> {
  if (type === "header") {
    const state = message(text(proto.HeaderBasedSessionState.name, name));
    return extension(
      "envoy.http.stateful_session.header",
      `${STATES}.header.v3.HeaderBasedSessionState`,
      state,
    );
  }
  const secure = message(text(proto.CookieAttribute.name, "Secure"));
  const cookie = message(
    text(proto.Cookie.name, name),
    duration(proto.Cookie.ttl, absoluteTimeoutMs),
    text(proto.Cookie.path, "/"),
    isSecure ? nested(proto.Cookie.attributes, secure) : undefined,
  );
  const state = message(nested(proto.CookieBasedSessionState.cookie, cookie));
  // Under another name Envoy does not find the extension.
  return extension(
    "envoy.http.stateful_session.cookie",
    `${STATES}.cookie.v3.CookieBasedSessionState`,
    state,
  );
}
