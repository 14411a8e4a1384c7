/** Reference pages are made from the code. `npm run docs` refreshes them. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { AdminState } from "../../src/admin/admin-state.ts";
import { Metrics } from "../../src/admin/metrics/metrics.ts";
import { metricsPage } from "../../src/admin/metrics/reference-page.ts";
import { adminEndpoints } from "../../src/admin/server/admin-server.ts";
import { EventStream } from "../../src/admin/server/events.ts";
import { adminApiPage } from "../../src/admin/server/reference-page.ts";
import { checkRulesPage } from "../../src/cli/check/reference-page.ts";
import { DOCUMENT_RULES } from "../../src/cli/check/rule-table.ts";
import { COMMANDS } from "../../src/cli/commands.ts";
import { cliReferencePage } from "../../src/cli/reference-page.ts";
import { RoutingTable } from "../../src/matching/routing-table.ts";
import { ROOT } from "./mergeway.ts";
import { backendSupportTable, fieldTable, supportTable, withTables } from "./policy-tables.ts";

const page = (name: string): string => join(ROOT, "docs/reference", name);

test("docs/reference/cli.md is up to date", async () => {
  await expect(cliReferencePage(COMMANDS)).toMatchFileSnapshot(page("cli.md"));
});

test("docs/reference/check-rules.md is up to date", async () => {
  await expect(checkRulesPage()).toMatchFileSnapshot(page("check-rules.md"));
});

test("docs/reference/metrics.md is up to date", async () => {
  await expect(metricsPage()).toMatchFileSnapshot(page("metrics.md"));
});

test("docs/reference/admin-api.md is up to date", async () => {
  const admin: AdminState = {
    version: "0",
    table: new RoutingTable(),
    state: () => ({ gateways: [], orphans: [], strayRoutes: [], strayPolicies: [], foreign: [] }),
    isReady: () => true,
    onChanges: () => () => undefined,
  };
  const endpoints = adminEndpoints(admin, new Metrics("0"), new EventStream(admin));
  await expect(adminApiPage(endpoints)).toMatchFileSnapshot(page("admin-api.md"));
});

test("the tables of docs/reference/policies.md are up to date", async () => {
  const text = readFileSync(page("policies.md"), "utf8");
  const tables = {
    support: supportTable(),
    traffic: fieldTable("TrafficPolicy"),
    client: fieldTable("ClientPolicy"),
    "backend support": backendSupportTable(),
    backend: fieldTable("BackendPolicy"),
  };
  await expect(withTables(text, tables)).toMatchFileSnapshot(page("policies.md"));
});

test("every rule of reading has a summary", () => {
  const files = ["src/api/admission/**/*.ts", "src/sources/files/**/*.ts"].flatMap((glob) =>
    globSync(glob, { cwd: ROOT }),
  );
  const used = files.flatMap((file) =>
    Array.from(
      readFileSync(join(ROOT, file), "utf8").matchAll(
        /"((?:schema|yaml|file|metadata|core)\/[a-z0-9-]+|unknown-(?:field|kind)|too-many-errors|duplicate-object|cel)"/g,
      ),
      ([, rule]) => rule as string,
    ),
  );
  expect(used.length).toBeGreaterThan(20);
  expect([...new Set(used)].filter((rule) => !Object.hasOwn(DOCUMENT_RULES, rule))).toEqual([]);
});

test("links between the documents lead to existing files", () => {
  const pages = ["*.md", "docs/**/*.md", "examples/**/*.md"].flatMap((glob) => globSync(glob, { cwd: ROOT }));
  const broken = pages.flatMap((file) =>
    Array.from(
      readFileSync(join(ROOT, file), "utf8").matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)/g),
      ([, target]) => ({
        file,
        target: target as string,
      }),
    ).filter(({ target }) => globSync(join(file, "..", target), { cwd: ROOT }).length === 0),
  );
  expect(pages.length).toBeGreaterThan(5);
  expect(broken).toEqual([]);
});
