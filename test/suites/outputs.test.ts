/** How what the programs write becomes cases. The texts are excerpts of real runs. */
import { expect, test } from "vitest";
import { casesIn as autobahnCases } from "../../suites/autobahn.ts";
import { casesIn as connectCases } from "../../suites/connect/suite.ts";
import { reasonIn } from "../../suites/grpc-interop.ts";
import { casesIn as h2specCases } from "../../suites/h2spec.ts";
import { parseJunit } from "../../suites/junit.ts";
import { casesOfSslyze, casesOfTestssl } from "../../suites/tls-scanners.ts";

test("JUnit: cases pass, fail, err and are skipped, with their words unescaped", () => {
  const report = `<testsuite tests="4"><testcase classname="a.b" name="one" time="0.1"/>
    <testcase classname="a.b" name="two&quot;"><failure message="1 &lt; 2&#10;at line 3">trace</failure></testcase>
    <testcase classname="a.b" name="three"><error>bad
actual</error></testcase>
    <testcase classname="a.b" name="four"><skipped message="no network" type="pytest.skip">x</skipped></testcase></testsuite>`;
  expect(parseJunit(report)).toEqual([
    { attributes: { classname: "a.b", name: "one", time: "0.1" }, outcome: "passed" },
    { attributes: { classname: "a.b", name: 'two"' }, outcome: "failed", text: "1 < 2\nat line 3" },
    { attributes: { classname: "a.b", name: "three" }, outcome: "failed", text: "bad\nactual" },
    { attributes: { classname: "a.b", name: "four" }, outcome: "skipped", text: "no network" },
  ]);
});

test("h2spec: the last line of an error is what came, the others are what may come", () => {
  const report = `<testcase package="http2/6.9.1" classname="Sends too much" time="1.0">
      <error>GOAWAY Frame (Error Code: FLOW_CONTROL_ERROR)
Connection closed
Timeout</error></testcase><testcase package="hpack/6" classname="Sends index 0" time="0"></testcase>`;
  expect(h2specCases(report, "TLS")).toEqual([
    {
      part: "TLS",
      name: "http2/6.9.1: Sends too much",
      outcome: "failed",
      reason: "expected GOAWAY Frame (Error Code: FLOW_CONTROL_ERROR) or Connection closed; got Timeout",
    },
    { part: "TLS", name: "hpack/6: Sends index 0", outcome: "passed" },
  ]);
});

test("gRPC interop: the reason is the fatal line, or the count of a soak", () => {
  expect(reasonIn("2026/11/17 20:01:16 FATAL: [interop] got empty server ID\nmore\n")).toBe(
    "got empty server ID",
  );
  expect(reasonIn("x\nsoak test successes: 9 / 10 iterations.\n[0, 1) 0\n")).toBe(
    "soak test successes: 9 / 10 iterations.",
  );
  expect(reasonIn("")).toBe("ended without a word");
});

test("Connect: every case that is sent has a result, and failures have their reason", () => {
  const output = `Sending request for "Basic/unary"...
Sending request for "Errors/unary"...
Received response for "Basic/unary"...
FAILED: Errors/unary:
	actual error {code: 13} does not match
	expected code 8
Total cases: 2
`;
  expect(connectCases(output, "grpc-go")).toEqual([
    { part: "grpc-go", name: "Basic/unary", outcome: "passed" },
    {
      part: "grpc-go",
      name: "Errors/unary",
      outcome: "failed",
      reason: "actual error {code: 13} does not match expected code 8",
    },
  ]);
});

test("sslyze: what is not compliant fails, every other check of the profile passes", () => {
  const output = ` COMPLIANCE AGAINST TLS CONFIGURATION
    127.0.0.1:28443: FAILED - Not compliant.
        * tls_curves: TLS curves {'X448'} are supported, but should be rejected.
        * something_new: not known here yet.
`;
  const cases = casesOfSslyze(output);
  expect(cases.filter(({ outcome }) => outcome === "failed").map(({ name }) => name)).toEqual([
    "tls_curves",
    "something_new",
  ]);
  expect(cases.length).toBeGreaterThan(15);
});

test("sslyze without a verdict is no success", () => {
  expect(() => casesOfSslyze("connection refused")).toThrow("sslyze gave no verdict");
});

test("testssl.sh: findings from LOW upwards fail, warnings are skipped, notes on the program are left out", () => {
  const report = JSON.stringify([
    { id: "engine_problem", severity: "WARN", finding: "no engine" },
    { id: "SSLv2", severity: "OK", finding: "not offered" },
    { id: "secure_client_renego", severity: "HIGH", finding: "VULNERABLE, DoS threat" },
    { id: "BREACH", severity: "WARN", finding: "no answer" },
  ]);
  expect(casesOfTestssl(report)).toEqual([
    { part: "testssl.sh", name: "SSLv2", outcome: "passed" },
    {
      part: "testssl.sh",
      name: "secure_client_renego",
      outcome: "failed",
      reason: "HIGH: VULNERABLE, DoS threat",
    },
    { part: "testssl.sh", name: "BREACH", outcome: "skipped", reason: "no answer" },
  ]);
});

test("Autobahn: the behaviour and the closing are cases of their own", () => {
  const graded = (behavior: string, behaviorClose: string) => ({ behavior, behaviorClose });
  const index = JSON.stringify({
    server: {
      "1.1.1": graded("OK", "OK"),
      "6.4.2": graded("NON-STRICT", "OK"),
      "7.1.1": graded("OK", "UNCLEAN"),
      "13.1.1": graded("UNIMPLEMENTED", "OK"),
    },
  });
  expect(autobahnCases(index, "ws").map(({ name, outcome }) => [name, outcome])).toEqual([
    ["1.1.1", "passed"],
    ["1.1.1: closing", "passed"],
    ["6.4.2", "passed"],
    ["6.4.2: closing", "passed"],
    ["7.1.1", "passed"],
    ["7.1.1: closing", "failed"],
    ["13.1.1", "skipped"],
    ["13.1.1: closing", "passed"],
  ]);
});
