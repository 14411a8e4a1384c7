/**
 * CORS for a rule (the HTTPRoute filter): the proxy answers preflights itself and marks the answers
 * to actual requests.
 *
 * - An origin is allowed by `*`, by being listed, or by a listed pattern with `*` for the leftmost
 *   labels of the host.
 * - With credentials a browser takes no `*` for an answer: the origin, method and headers it asked
 *   for are named instead.
 * - An origin that is not allowed gets the ordinary answer without any permission; the browser does
 *   the refusing.
 */

import type { CorsPolicy } from "../../../plan/rule.ts";
import { HeaderFields } from "../message/header-fields.ts";
import type { RoutedRequest } from "./routed-request.ts";

export function isPreflight(request: RoutedRequest): boolean {
  return (
    request.method === "OPTIONS" &&
    request.headers.has("origin") &&
    request.headers.has("access-control-request-method")
  );
}

export function answerPreflight(request: RoutedRequest, policy: CorsPolicy): void {
  const { exchange } = request;
  const headers = new HeaderFields();
  const origin = allowedOrigin(policy, request.headers.get("origin"));
  if (origin !== undefined) {
    allowOrigin(headers, policy, origin);
    const method = request.headers.get("access-control-request-method");
    const wanted = request.headers.get("access-control-request-headers");
    setList(headers, "access-control-allow-methods", listFor(policy, policy.allowMethods, method));
    setList(headers, "access-control-allow-headers", listFor(policy, policy.allowHeaders, wanted));
    headers.set("access-control-max-age", String(policy.maxAgeSeconds));
  }
  exchange.answer(204, headers, false);
}

export function addCorsHeaders(
  headers: HeaderFields,
  policy: CorsPolicy,
  requestOrigin: string | undefined,
): void {
  headers.removeAll((name) => name.startsWith("access-control-"));
  const origin = allowedOrigin(policy, requestOrigin);
  if (origin === undefined) return;
  allowOrigin(headers, policy, origin);
}

function allowOrigin(headers: HeaderFields, policy: CorsPolicy, origin: string): void {
  headers.set("access-control-allow-origin", origin);
  if (origin !== "*") headers.add("vary", "Origin");
  if (policy.allowCredentials) headers.set("access-control-allow-credentials", "true");
  // Browsers read it off actual answers only; the conformance suite wants it in preflights, too.
  setList(headers, "access-control-expose-headers", policy.exposeHeaders.join(", "));
}

function allowedOrigin(policy: CorsPolicy, origin: string | undefined): string | undefined {
  if (origin === undefined) return undefined;
  for (const allowed of policy.allowOrigins) {
    if (allowed === "*") return policy.allowCredentials ? origin : "*";
    if (originMatches(allowed, origin)) return origin;
  }
  return undefined;
}

function originMatches(allowed: string, origin: string): boolean {
  const pattern = allowed.toLowerCase();
  const given = origin.toLowerCase();
  const star = pattern.indexOf("*");
  if (star < 0) return pattern === given;
  const before = pattern.slice(0, star);
  const after = pattern.slice(star + 1);
  const middle = given.slice(before.length, given.length - after.length);
  return (
    given.length > before.length + after.length &&
    given.startsWith(before) &&
    given.endsWith(after) &&
    /^[a-z0-9.-]+$/.test(middle)
  );
}

function listFor(policy: CorsPolicy, list: readonly string[], wanted: string | undefined): string {
  if (list.includes("*")) return policy.allowCredentials ? (wanted ?? "") : "*";
  return list.join(", ");
}

function setList(headers: HeaderFields, name: string, list: string): void {
  if (list !== "") headers.set(name, list);
}
