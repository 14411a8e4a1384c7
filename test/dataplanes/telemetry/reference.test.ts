import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { REQUEST_FIELDS } from "../../../src/dataplanes/telemetry/request-fields.ts";

test("docs/reference/access-log.md has every field, with its meaning and its attribute", () => {
  const rows = REQUEST_FIELDS.map(
    ({ name, help, attribute }) => `| \`${name}\` | ${help} | ${attribute ? `\`${attribute}\`` : ""} |`,
  );
  const page = readFileSync("docs/reference/access-log.md", "utf8");
  const [, table = ""] = page.split("## Fields");
  const found = table
    .split("\n## ")[0]
    ?.split("\n")
    .filter((line) => line.startsWith("| `"));
  expect(found).toEqual(rows);
});
