/**
 * Every file of cases/ against the engine. GOLDEN_UPDATE=1 writes what the engine says now into the
 * files; read the difference before committing it.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { stringify } from "yaml";
import { keyOf, partsOf } from "../../src/api/key.ts";
import { renderStatus } from "../../src/status/render.ts";
import { engineOf } from "./case-engine.ts";
import { type Case, caseText, readCase } from "./case-file.ts";
import { compactPlan, compactStatus } from "./compact.ts";
import { TEST_SETTINGS } from "./settings.ts";

const FOLDER = new URL("cases/", import.meta.url);
const MAX_LINES = 150;
/** A document that everybody can open: a GEP, the documentation of a kind's fields, a web page. */
const PUBLIC_CLAUSE =
  /^(GEP-\d+|HTTPRoute|GRPCRoute|BackendTLSPolicy|Gateway|cloudflare-tunnel-gateway-controller, ListenerSet,)/;
const update = process.env["GOLDEN_UPDATE"] === "1";
const files = readdirSync(FOLDER).sort();

describe("golden cases", () => {
  it.each(files)("the engine computes what %s expects", (file) => {
    const path = new URL(file, FOLDER).pathname;
    const golden = readCase(path);
    const computed = compute(golden);
    if (update) writeFileSync(path, caseText(golden, computed));
    else expect(computed).toBe(golden.expected);
    expect(caseText(golden, computed).split("\n").length).toBeLessThanOrEqual(MAX_LINES);
    expect(golden.header).toMatchObject({ case: file.replace(/\.yaml$/, "") });
    expect(golden.header.clause).toMatch(PUBLIC_CLAUSE);
  });

  it("no case contains a private key", () => {
    for (const file of files) expect(readFileSync(new URL(file, FOLDER), "utf8")).not.toContain("BEGIN");
  });
});

function compute({ header, resources }: Case): string {
  const engine = engineOf({ header, resources });
  const delta =
    header.thenDelete === undefined
      ? undefined
      : engine.apply(header.thenDelete.map((key) => ({ key, resource: undefined })));
  const statuses = resources
    .map((resource) => ({ resource, key: keyOf(resource), verdict: engine.verdict(keyOf(resource)) }))
    .filter(({ key }) => !header.thenDelete?.includes(key))
    .flatMap(({ resource, key, verdict }) => {
      if (verdict === undefined) return [];
      const { kind, namespace, name } = partsOf(key);
      const status = renderStatus(resource, verdict, {
        controllerName: TEST_SETTINGS.controllerName,
        now: "2026-01-01T00:00:00Z",
      });
      return [
        [`${kind} ${namespace === "" ? name : `${namespace}/${name}`}`, compactStatus(status)] as const,
      ];
    });
  return stringify(
    {
      status: Object.fromEntries(statuses),
      plan: compactPlan(engine.plan()),
      ...(delta === undefined
        ? {}
        : {
            delta: {
              removes: delta.plan.removes.toSorted(),
              upserts: delta.plan.upserts.map(({ id }) => id).toSorted(),
            },
          }),
    },
    { lineWidth: 0 },
  );
}
