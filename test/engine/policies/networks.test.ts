import { expect, test } from "vitest";
import { readNetwork } from "../../../src/engine/policies/networks.ts";

test.each([
  ["10.0.0.0/8", "10.0.0.0/8"],
  ["192.0.2.7", "192.0.2.7/32"],
  ["2001:db8::/32", "2001:db8::/32"],
  ["2001:db8::1", "2001:db8::1/128"],
  ["::/0", "::/0"],
  ["ffff::/16", "ffff::/16"],
  ["0:ffff::/32", "0:ffff::/32"],
  ["::ffff:1:2:3/112", "::ffff:1:2:3/112"],
])("%s is a network", (text, network) => {
  expect(readNetwork(text)).toBe(network);
});

test.each([
  "",
  "10.0.0.0/33",
  "10.0.0.0/08",
  "10.0.0/8",
  "1:2:3",
  "2001:db8::/129",
  "10.0.0.0/8/8",
  "::ffff:10.0.0.0/104",
  "::ffff:a00:0/104",
  "0:0:0:0:0:ffff:a00:1",
  "0::ffff:0:0/96",
  "0000:0:0::FFFF:10.0.0.1",
])("%j is none, or a form of IPv4 that no client has", (text) => {
  expect(readNetwork(text)).toBeUndefined();
});
