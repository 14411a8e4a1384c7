/** The page as the admin server gives it to browsers: files, headers, and who may ask. */
import { globSync, readFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Metrics } from "../../src/admin/metrics/metrics.ts";
import { type AdminServer, startAdmin } from "../../src/admin/server/admin-server.ts";
import { openManifests } from "../../src/cli/workspace/workspace.ts";
import type { RoutingTable } from "../../src/matching/routing-table.ts";
import { buildState } from "../../src/view/build-state.ts";
import { ROOT } from "../cli/mergeway.ts";

let server: AdminServer;
let metrics: Metrics;
let table: RoutingTable;

beforeAll(async () => {
  const workspace = await openManifests([`${ROOT}/examples/two-teams`]);
  const state = buildState(workspace);
  metrics = new Metrics("0");
  table = workspace.table;
  server = await startAdmin(
    {
      version: "0",
      table: workspace.table,
      state: () => state,
      isReady: () => true,
      onChanges: () => () => undefined,
    },
    { address: "127.0.0.1", port: 0, metrics },
  );
});
afterAll(() => server.close());

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

/** fetch would not send a Host or Origin of one's own. */
async function get(path: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  const sent = request(`${server.url}${path}`, { headers, agent: false }, (response) => {
    let text = "";
    response.on("data", (chunk: Buffer) => {
      text += chunk.toString();
    });
    response.on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
  });
  sent.on("error", reject).end();
  return await promise;
}

const BROWSER = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };

test("a browser gets the page at /, and a program the list of endpoints", async () => {
  const page = await get("/", BROWSER);
  expect(page.headers["content-type"]).toBe("text/html; charset=utf-8");
  expect(page.text).toContain("<title>Mergeway</title>");
  expect(page.headers["vary"]).toBe("accept");
  expect(JSON.parse((await get("/", { accept: "*/*" })).text)).toHaveProperty("endpoints");
});

test("every file that the page asks for is served, as JavaScript without types", async () => {
  const { text: html } = await get("/", BROWSER);
  const open = Array.from(html.matchAll(/(?:src|href)="(\/[^"]+)"/g), ([, path]) => path ?? "");
  const seen = new Set<string>();
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (seen.has(path)) continue;
    seen.add(path);
    const { status, headers, text } = await get(path);
    expect([path, status]).toEqual([path, 200]);
    if (path.endsWith(".css")) expect(headers["content-type"]).toBe("text/css; charset=utf-8");
    if (!path.endsWith(".js")) continue;
    expect(headers["content-type"]).toBe("text/javascript; charset=utf-8");
    expect(text).not.toMatch(/^(export )?(interface|type) /m);
    const imports = Array.from(text.matchAll(/from "([^"]+)"/g), ([, specifier]) => specifier ?? "");
    open.push(...imports.map((specifier) => new URL(specifier, `http://page${path}`).pathname));
  }
  expect(seen.size).toBeGreaterThan(15);
});

test("the page has no inline script or style, and nothing from elsewhere", async () => {
  const { text } = await get("/", BROWSER);
  expect(text).not.toMatch(/<style|\sstyle=|\son[a-z]+=|<script(?![^>]*\ssrc=)/i);
  expect(text.replaceAll("http://www.w3.org/2000/svg", "")).not.toMatch(/https?:|"\/\//);
});

test("no script of the page makes markup of text", () => {
  const scripts = globSync("src/page/**/*.ts", { cwd: ROOT });
  expect(scripts.length).toBeGreaterThan(15);
  const risky = /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|"style"/;
  expect(scripts.filter((file) => risky.test(readFileSync(join(ROOT, file), "utf8")))).toEqual([]);
});

test("every answer has the headers that keep browsers strict", async () => {
  for (const path of ["/", "/page/main.js", "/page/page.css", "/api/v1/outline", "/nothing"]) {
    const { headers } = await get(path, BROWSER);
    expect(headers["content-security-policy"]).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    expect(headers["x-content-type-options"]).toBe("nosniff");
    expect(headers["referrer-policy"]).toBe("no-referrer");
    expect(headers["cross-origin-resource-policy"]).toBe("same-origin");
  }
});

test("a Host that is a name, and a page of another origin, are refused for every path", async () => {
  const { host } = new URL(server.url);
  for (const path of ["/", "/page/main.js", "/api/v1/outline", "/api/v1/events"]) {
    expect((await get(path, { ...BROWSER, host: "rebound.example.com" })).status).toBe(403);
    expect((await get(path, { ...BROWSER, origin: "https://evil.example" })).status).toBe(403);
    expect((await get(path, { ...BROWSER, origin: "null" })).status).toBe(403);
    expect((await get(path, { ...BROWSER, origin: "http://localhost:1" })).status).toBe(403);
    expect(
      (await get(path, { ...BROWSER, "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors" })).status,
    ).toBe(403);
  }
  expect((await get("/api/v1/outline", { origin: `http://${host}` })).status).toBe(200);
  expect((await get("/api/v1/outline", { "sec-fetch-site": "same-origin" })).status).toBe(200);
});

test("a link from elsewhere may open the page, but not in a frame", async () => {
  const link = { ...BROWSER, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" };
  expect((await get("/", { ...link, "sec-fetch-dest": "document" })).status).toBe(200);
  expect((await get("/", { ...link, "sec-fetch-dest": "iframe" })).status).toBe(403);
});

test("no path leads out of the page's folder", async () => {
  for (const path of [
    "/page/../main.js",
    "/page/%2e%2e/main.js",
    "/page/tsconfig.json",
    "/page/main.ts",
    "/page/",
  ]) {
    expect([path, (await get(path)).status]).toEqual([path, 404]);
  }
});

test("the outline has the whole tree and no key", async () => {
  const { text } = await get("/api/v1/outline");
  const { version, gateways } = JSON.parse(text) as { version: string; gateways: { owners: unknown[] }[] };
  expect(version).toBe("0");
  expect(gateways[0]?.owners).toHaveLength(4);
  expect(text).not.toContain("PRIVATE");
  expect(text).not.toMatch(/tls\.key|[A-Za-z0-9+/]{60}/);
});

test("traffic is counted by listener, and a listener that is gone is left out", async () => {
  const request = { status: 200, durationMs: 1, bytesReceived: 0, bytesSent: 0 };
  const listener = "listener:platform/shared:ListenerSet/team-tea/tea#http";
  metrics.traffic.apply({ upserts: [...table.items()], removes: [] });
  const { tally } = metrics.traffic;
  tally.countRequest({ ...request, listener });
  tally.countRequest({ ...request, listener, status: 503 });
  tally.countRequest({ ...request, listener: "listener:platform/shared:ListenerSet/team-tea/gone#http" });
  expect(JSON.parse((await get("/api/v1/traffic")).text)).toEqual({
    items: [{ listener: "ListenerSet/team-tea/tea#http", requests: 2, errors: 1 }],
  });
});
