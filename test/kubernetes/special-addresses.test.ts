import { describe, expect, test } from "vitest";
import {
  canonicalAddress,
  refusedInCluster,
  specialAddress,
} from "../../src/kubernetes/special-addresses.ts";

describe("addresses that mean the data plane's own pod or node", () => {
  test.each([
    ["127.0.0.1", "loopback"],
    ["127.255.0.3", "loopback"],
    ["::1", "loopback"],
    ["0:0:0:0:0:0:0:1", "loopback"],
    ["::ffff:127.0.0.1", "loopback"],
    ["::FFFF:7f00:1", "loopback"],
    ["::127.0.0.1", "loopback"],
    ["64:ff9b::7f00:1", "loopback"],
    ["2002:7f00:1::", "loopback"],
    ["0.0.0.0", "unspecified"],
    ["0.1.2.3", "unspecified"],
    ["::", "unspecified"],
    ["::ffff:0.0.0.0", "unspecified"],
    ["169.254.169.254", "link-local"],
    ["::ffff:169.254.169.254", "link-local"],
    ["::ffff:a9fe:a9fe", "link-local"],
    ["64:ff9b::169.254.169.254", "link-local"],
    ["fe80::1", "link-local"],
    ["fe80::1%eth0", "link-local"],
    ["febf:ffff::1", "link-local"],
    ["224.0.0.1", "multicast"],
    ["255.255.255.255", "multicast"],
    ["ff02::1", "multicast"],
  ])("%s is %s", (address, special) => {
    expect(specialAddress(address)).toBe(special);
    expect(refusedInCluster(address)).toContain(`${special} address`);
  });

  test.each([
    "10.0.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "169.253.0.1",
    "128.0.0.1",
    "223.255.255.255",
    "2001:db8::1",
    "fd00::1",
    "fec0::1",
    "::ffff:10.0.0.1",
    "64:ff9b::a00:1",
    "2002:a00:1::1",
  ])("%s is an address like any other", (address) => {
    expect(specialAddress(address)).toBeUndefined();
    expect(refusedInCluster(address)).toBeUndefined();
  });
});

test("an address has one text, however it is written", () => {
  expect(canonicalAddress("::ffff:10.0.0.5")).toBe("10.0.0.5");
  expect(canonicalAddress("::ffff:a00:5")).toBe("10.0.0.5");
  expect(canonicalAddress("10.0.0.5")).toBe("10.0.0.5");
  expect(canonicalAddress("FD00:0::5")).toBe(canonicalAddress("fd00::5"));
});
