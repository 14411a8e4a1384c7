/** The commands, as processes of their own. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { mergeway, ROOT } from "../../cli/mergeway.ts";
import { gateway, httpRoute, listenerSet } from "./support/manifests.ts";

const EXAMPLE = join(ROOT, "examples/tunnel");
const folder = mkdtempSync(join(tmpdir(), "mergeway-render-"));
afterAll(() => rmSync(folder, { recursive: true }));

function file(name: string, ...documents: readonly string[]): string {
  const path = join(folder, name);
  writeFileSync(path, documents.join("\n---\n"));
  return path;
}

describe("mergeway tunnel render", () => {
  const services = [
    { hostname: "platform.example.com", service: "http_status:404" },
    { hostname: "team-a.example.com", service: "http://app.team-a.svc.cluster.local:80" },
    { hostname: "team-b.example.com", service: "http://app.team-b.svc.cluster.local:80" },
    { service: "http_status:404" },
  ];

  test("prints cloudflared's file", async () => {
    const { code, stdout, stderr } = await mergeway(["tunnel", "render", EXAMPLE]);
    expect([code, stderr]).toEqual([0, ""]);
    expect(parse(stdout)).toEqual({ ingress: services });
  });

  test("prints the body of an API call, by endpoints", async () => {
    const { code, stdout } = await mergeway([
      "tunnel",
      "render",
      EXAMPLE,
      "-o",
      "json",
      "--targets",
      "endpoints",
    ]);
    expect(code).toBe(0);
    const { config } = JSON.parse(stdout) as { config: { ingress: { service: string }[] } };
    expect(config.ingress.map(({ service }) => service)).toContain("http://127.0.0.1:9101");
  });

  test("refuses what it cannot express, and prints the rest only where that is asked for", async () => {
    const header = { matches: [{ headers: [{ name: "x", value: "v" }] }], backend: "app" };
    const path = file(
      "refused.yaml",
      gateway(),
      listenerSet("team", [
        { name: "web", hostname: "a.example.com" },
        { name: "db", port: 5432, protocol: "TCP" },
      ]),
      httpRoute("team", { section: "web", rules: [header, { path: "/x", backend: "app" }] }),
      "apiVersion: v1\nkind: Service\nmetadata: { namespace: team, name: app }\nspec: { ports: [{ port: 80 }] }",
    );
    const strict = await mergeway(["tunnel", "render", path]);
    expect([strict.code, strict.stdout]).toEqual([1, ""]);
    expect(strict.stderr).toContain("refused: HTTPRoute team/web, rule 1, match 1: a match of headers");
    const partial = await mergeway(["tunnel", "render", path, "--partial"]);
    expect(partial.code).toBe(1);
    expect(parse(partial.stdout)).toEqual({
      ingress: [
        { hostname: "a.example.com", path: "^/x(?:/|$)", service: "http://app.team.svc.cluster.local:80" },
        { hostname: "a.example.com", service: "http_status:404" },
        { hostname: "platform.example.com", service: "http_status:404" },
        { service: "http_status:404" },
      ],
    });
  });

  test("wants to know which Gateway is meant", async () => {
    const path = file("two.yaml", gateway(), gateway().replace("name: edge", "name: second"));
    const unclear = await mergeway(["tunnel", "render", path]);
    expect([unclear.code, unclear.stderr]).toEqual([2, expect.stringContaining("infra/edge, infra/second")]);
    expect((await mergeway(["tunnel", "render", path, "--gateway", "infra/second"])).code).toBe(0);
    expect((await mergeway(["tunnel", "render", path, "--gateway", "infra/third"])).code).toBe(2);
  });

  test.each([[["tunnel"]], [["tunnel", "render"]], [["tunnel", "paint", "x"]]])(
    "%j is not understood",
    async (args) => {
      expect((await mergeway(args)).code).toBe(2);
    },
  );
});

test("run --data-plane tunnel says what it needs", async () => {
  const { code, stderr } = await mergeway(["run", EXAMPLE, "--data-plane", "tunnel"], {
    env: { CLOUDFLARE_ACCOUNT_ID: "", CLOUDFLARE_API_TOKEN: "" },
  });
  expect([code, stderr]).toEqual([2, expect.stringContaining("CLOUDFLARE_ACCOUNT_ID is not set")]);
});

test("the demo serves from the edge through a tunnel and a listener of a ListenerSet", () => {
  const { status, stdout } = spawnSync(process.execPath, [join(ROOT, "tools/tunnel-demo.ts")], {
    encoding: "utf8",
  });
  expect(stdout).toContain(
    "ok    team-a.example.com  200  edge → tunnel → ListenerSet team-a/team-a-listeners → backend of team-a",
  );
  expect(stdout).toContain("ok    team-b.example.com  200");
  expect(stdout).toContain("ok    nobody.example.com  404");
  expect(status).toBe(0);
});
