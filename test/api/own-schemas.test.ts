import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { type CustomResourceDefinition, definitionOf } from "../../tools/generate-schemas.ts";

const root = join(import.meta.dirname, "..", "..");

test("GatewayParameters are admitted by the CRD that the chart installs", () => {
  const file = "charts/mergeway/charts/crds/crds/mergeway.dev_gatewayparameters.yaml";
  const crd = parse(readFileSync(join(root, file), "utf8")) as CustomResourceDefinition;
  const schema = readFileSync(join(root, "src/api/schemas/mergeway/gatewayparameters.json"), "utf8");
  expect(
    JSON.parse(schema),
    `run: node tools/generate-schemas.ts mergeway ${file.slice(0, file.lastIndexOf("/"))}`,
  ).toEqual(JSON.parse(JSON.stringify(definitionOf(crd))));
});
