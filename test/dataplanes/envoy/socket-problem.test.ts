import { expect, test } from "vitest";
import { socketProblem } from "../../../src/dataplanes/envoy/socket-problem.ts";

test("the reason why a socket cannot be bound is told", () => {
  const nack =
    "Error adding/updating listener(s) port:infra/gw:tcp/80: cannot bind '0.0.0.0:80': Permission denied\n";
  expect(socketProblem(nack)).toBe("permission denied");
});

test.each([
  ["cannot bind 'secret of another tenant': Permission denied"],
  ["cannot bind '0.0.0.0:80': what another tenant has written"],
  ["Protobuf message: header x-note has cannot bind '0.0.0.0:80': Permission denied, and more"],
])("nothing that configuration can contain is told: %s", (nack) => {
  expect(socketProblem(nack)).toBeUndefined();
});
