import { expect, test } from "vitest";
import { ScopeCompression } from "../../../../../src/dataplanes/envoy/compile/routes/compression.ts";
import {
  compressionOff,
  routeCompression,
} from "../../../../../src/dataplanes/envoy/messages/compression/compressors.ts";
import type { CompressionPolicy } from "../../../../../src/plan/rule.ts";
import { forwardTo, rule } from "../../../support/plan-builder.ts";

const usual: CompressionPolicy = { algorithms: ["gzip", "zstd"], minBytes: 10, contentTypes: ["text/html"] };
const own: CompressionPolicy = { ...usual, algorithms: ["zstd", "gzip"] };
const NAME = "mergeway.compression";

test("the policy of most rules stands once, in the scope; other routes say otherwise", () => {
  const withUsual = rule({ action: forwardTo("a", { compression: usual }) });
  const withOwn = rule({ action: forwardTo("a", { compression: own }) });
  const without = rule({ action: forwardTo("a") });
  const answered = rule({ action: { type: "respond", status: 503, reason: "" } });
  const scope = new ScopeCompression([without, withOwn, withUsual, { ...withUsual }, answered]);
  expect(scope.scope).toEqual([[NAME, routeCompression(usual)]]);
  expect(scope.of(withUsual)).toEqual([]);
  expect(scope.of(withOwn)).toEqual([[NAME, routeCompression(own)]]);
  for (const configs of [scope.of(without), scope.of(answered), scope.none])
    expect(configs).toEqual([[NAME, compressionOff()]]);
});

test("a scope without it says nothing of it", () => {
  const without = rule({ action: forwardTo("a") });
  const scope = new ScopeCompression([without]);
  expect([...scope.scope, ...scope.none, ...scope.of(without)]).toEqual([]);
});
