import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { type CustomResourceDefinition, definitionOf } from "../../tools/generate-schemas.ts";

const root = join(import.meta.dirname, "..", "..");
const folder = "charts/mergeway/charts/crds/crds";

test.each([
  ["GatewayParameters", "gatewayparameters"],
  ["TrafficPolicy", "trafficpolicies"],
  ["ClientPolicy", "clientpolicies"],
  ["BackendPolicy", "backendpolicies"],
  ["TenantPolicy", "tenantpolicies"],
])("%s are admitted by the CRD that the chart installs", (kind, plural) => {
  const file = join(root, folder, `mergeway.dev_${plural}.yaml`);
  const crd = parse(readFileSync(file, "utf8")) as CustomResourceDefinition;
  const schema = readFileSync(join(root, `src/api/schemas/mergeway/${kind.toLowerCase()}.json`), "utf8");
  expect(JSON.parse(schema), `run: node tools/generate-schemas.ts mergeway ${folder}`).toEqual(
    JSON.parse(JSON.stringify(definitionOf(crd))),
  );
});
