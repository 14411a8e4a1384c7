import { expect, test } from "vitest";
import { forgedFieldPattern, twinsOf } from "../../src/dataplanes/forged-fields.ts";

const always = [
  "proxy",
  "x-forwarded-client-cert",
  "x-forwarded-client_cert",
  "x-envoy-retry-on",
  "x-envoy-",
  "x_envoy_retry-on",
  "x.forwarded.for",
  "x-forwarded_for",
  "x_forwarded-proto",
  "x_real-ip",
  "x_request_id",
  "content_length",
  "transfer~encoding",
];
const unlessTrusted = ["forwarded", "x-real-ip", "x-forwarded-for", "x-forwarded-anything"];
const kept = [
  "x-request-id",
  "content-length",
  "x-forwarded",
  "x-envoy",
  "my-x-envoy-field",
  "proxy-status",
  "x_custom",
  "auth_token",
];

test("forged fields and their twins are removed, with and without trusted proxies in front", () => {
  for (const trustsFront of [false, true]) {
    const pattern = new RegExp(forgedFieldPattern(trustsFront));
    const removed = [...always, ...unlessTrusted, ...kept].filter((name) => pattern.test(name));
    expect(removed).toEqual(trustsFront ? always : [...always, ...unlessTrusted]);
  }
});

test("a name is no twin of itself, and one without a dash has none", () => {
  const isTwin = (name: string, of: string): boolean =>
    twinsOf(of).some((twin) => new RegExp(`^${twin}$`).test(name));
  expect(isTwin("x-a-b", "x-a-b")).toBe(false);
  for (const name of ["x_a-b", "x-a_b", "x_a_b", "x.a!b"]) expect(isTwin(name, "x-a-b")).toBe(true);
  for (const name of ["x1a-b", "xa-b", "x_a_bc"]) expect(isTwin(name, "x-a-b")).toBe(false);
  expect(twinsOf("proxy")).toEqual([]);
  expect(isTwin("a.b_c", "a.b-c")).toBe(true);
});
