import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import type { RequestRecord } from "../../../src/dataplanes/request-record.ts";
import { DEFAULT_TEXT, jsonLine, textLine } from "../../../src/dataplanes/telemetry/log-lines.ts";
import { PlanNames } from "../../../src/dataplanes/telemetry/plan-names.ts";
import { named, REQUEST_FIELDS } from "../../../src/dataplanes/telemetry/request-fields.ts";

const CRD = "charts/mergeway/charts/crds/crds/mergeway.dev_gatewayparameters.yaml";
const names = new PlanNames();
const record: RequestRecord = {
  time: Date.UTC(2026, 0, 2),
  client: "192.0.2.1",
  protocol: "HTTP/2",
  scheme: "https",
  method: "GET",
  authority: "shop.example",
  path: "/",
  requestId: "1",
  port: 443,
  status: 200,
  bytesReceived: 0,
  bytesSent: 12,
  durationMs: 1.23456,
};

/** The expression that the API server checks formats with. */
function admits(format: string): boolean {
  const crd = parse(readFileSync(CRD, "utf8")) as {
    readonly spec: { readonly versions: readonly { readonly schema: unknown }[] };
  };
  const path =
    "openAPIV3Schema properties spec properties accessLog properties stdout properties text pattern";
  const pattern = path
    .split(" ")
    .reduce((node, key) => (node as Record<string, unknown>)[key], crd.spec.versions[0]?.schema);
  return new RegExp(pattern as string, "u").test(format);
}

describe("lines of the access log", () => {
  test("a format has fields between percent signs, and a dash for what there is not", () => {
    const render = textLine('%client% "%method% %path%" %status% %reason% 100%%');
    expect(render?.(named(record, names))).toBe('192.0.2.1 "GET /" 200 - 100%');
    expect(textLine(DEFAULT_TEXT)?.(named(record, names))).toBe(
      '192.0.2.1 [2026-01-02T00:00:00.000Z] "GET / HTTP/2" "shop.example" 200 12 1.235ms -/-/-#- - "-"',
    );
  });

  test.each(["%nothing%", "100%", "%status", "a\nb", "%status%\r"])("%j is no format", (format) => {
    expect(textLine(format)).toBeUndefined();
    expect(admits(format)).toBe(false);
  });

  test("the API server admits every field", () => {
    for (const { name } of REQUEST_FIELDS) {
      expect(admits(`a %${name}% %%`), name).toBe(true);
      expect(textLine(`a %${name}% %%`), name).toBeDefined();
    }
  });

  test("no value can end a line, leave its quotation marks or steer a terminal", () => {
    const hostile = 'x" 200 "\\\r\n\u0000\u001b[2J\u009b\u202e\u2028\u2066\ufeff';
    const told = named({ ...record, path: hostile, userAgent: hostile, authority: hostile }, names);
    const text = textLine('"%path%" "%userAgent%"')?.(told) ?? "";
    const value = 'x\\" 200 \\"\\\\\\u000d\\u000a\\u0000\\u001b[2J\\u009b\\u202e\\u2028\\u2066\\ufeff';
    expect(text).toBe(`"${value}" "${value}"`);
    const json = jsonLine(told);
    expect(json).toMatch(/^[\x20-\x7e]*$/);
    expect((JSON.parse(json) as { readonly path: string }).path).toBe(hostile);
  });

  test("what a client chooses is cut to a length", () => {
    const long = "x".repeat(60_000);
    const told = named({ ...record, path: long, userAgent: long, authority: long, method: long }, names);
    expect(jsonLine(told).length).toBeLessThan(4_000);
  });
});
