import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { descriptorsOf } from "../../../../tools/envoy-descriptors.ts";
import { PROTO_FILE, protoText } from "../../../../tools/generate-envoy-proto.ts";
import { envoyBinary } from "../../support/envoy-binary.ts";

test("fields have the numbers and types that the Envoy of these tests gives them", () => {
  const text = protoText(descriptorsOf(envoyBinary()));
  expect(text).toContain('export type Cluster = "envoy.config.cluster.v3.Cluster";');
  expect(readFileSync(PROTO_FILE, "utf8")).toBe(text);
});
