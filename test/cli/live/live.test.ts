/** `mergeway top` and `mergeway watch` beside a running `mergeway run`. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { terminalOn } from "../../../src/cli/foundation/terminal.ts";
import { EventReader } from "../../../src/cli/live/event-reader.ts";
import { ownerRates } from "../../../src/cli/live/owner-rates.ts";
import { tableOf } from "../../../src/cli/live/run-top.ts";
import { ask } from "../../dataplanes/support/http-peers.ts";
import { folder, freePorts, mergeway, ROOT, type Running, start } from "../mergeway.ts";

const EXAMPLE = join(ROOT, "examples/two-teams");

interface Served {
  readonly running: Running;
  readonly path: string;
  readonly admin: string;
  readonly port: number;
}

async function serve(): Promise<Served> {
  const [http = 0, https = 0] = await freePorts(2);
  const names = [
    "gateway.yaml",
    "platform-certificate.yaml",
    "team-coffee.yaml",
    "team-coffee-certificate.yaml",
  ];
  const text = (name: string): string =>
    readFileSync(join(EXAMPLE, name), "utf8")
      .replaceAll("8080", String(http))
      .replaceAll("8443", String(https));
  const path = folder(Object.fromEntries(names.map((name) => [name, text(name)])));
  const flags = ["--address", "127.0.0.1", "--admin-address", "127.0.0.1:0", "--workers", "0"];
  const running = start(["run", path, ...flags]);
  const [, admin = ""] = await running.prints(/admin server on http:\/\/(\S+)/);
  await running.prints(/listeners served/);
  return { running, path, admin, port: http };
}

test("top shows the rate of requests by owner, without a terminal one table after the other", async () => {
  const { admin, port } = await serve();
  const top = start(["top", "--admin", admin, "--interval", "1", "--count", "3"]);
  for (let asked = 0; asked < 30; asked++) {
    await ask(port, { host: "coffee.example.com" });
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  expect(await top.exited).toBe(0);
  const out = top.stdout();
  expect(out).toMatch(/REQ\/S {2}ERR\/S {2}TOTAL {2}LISTENERS {2}OWNER\n/);
  expect(out).toMatch(/^\d\S* +\d\S* +\d+ +1 +ListenerSet\/team-coffee\/coffee$/m);
  expect(out).not.toContain("\x1b");
});

test("watch prints a change as it happens, and as JSON for programs", async () => {
  const { admin, path } = await serve();
  const watch = start(["watch", "--admin", admin]);
  const json = start(["watch", "--admin", admin, "--json", "--earlier"]);
  await json.prints(/"type":"listener"/);
  const file = join(path, "team-coffee.yaml");
  await new Promise((resolve) => setTimeout(resolve, 300));
  writeFileSync(file, readFileSync(file, "utf8").replaceAll("coffee.example.com", "tea.example.com"));
  await watch.prints(
    /^\d\d:\d\d:\d\d ~ tea\.example\.com at ListenerSet team-coffee\/coffee, listener http: 1 rule$/m,
  );
  await json.prints(/"hostname":"tea\.example\.com"/);
  for (const line of json.stdout().trim().split("\n")) expect(JSON.parse(line)).toHaveProperty("at");
  watch.kill("SIGINT");
  expect(await watch.exited).toBe(0);
});

test("watch waits for a server that goes away, and says so", async () => {
  const { admin, running } = await serve();
  const watch = start(["watch", "--admin", admin]);
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  running.kill("SIGTERM");
  await watch.prints(/the admin server has gone; waiting for it/);
  watch.kill("SIGINT");
  expect(await watch.exited).toBe(0);
});

test.each(["top", "watch"])("%s says what to do when nobody is there", async (command) => {
  const [free = 0] = await freePorts(1);
  const { code, stderr } = await mergeway([command, "--admin", `127.0.0.1:${free}`]);
  expect(code).toBe(2);
  expect(stderr).toContain("there is no admin server");
  expect(stderr).toContain("--admin");
});

test("rates are of the time between two readings, and a server that began anew counts from 0", () => {
  const item = (
    listener: string,
    requests: number,
    errors = 0,
  ): { listener: string; requests: number; errors: number } => ({
    listener,
    requests,
    errors,
  });
  const before = { at: 1_000, items: [item("ListenerSet/a/own#x", 10), item("ListenerSet/b/own#x", 500)] };
  const now = {
    at: 3_000,
    items: [
      item("ListenerSet/a/own#x", 14, 2),
      item("ListenerSet/a/own#y", 6),
      item("ListenerSet/b/own#x", 4),
    ],
  };
  expect(ownerRates(before, now)).toEqual([
    { owner: "ListenerSet/a/own", listeners: 2, requests: 5, errors: 1, total: 20 },
    { owner: "ListenerSet/b/own", listeners: 1, requests: 2, errors: 0, total: 4 },
  ]);
});

test("a narrow terminal gets fewer columns, no line is wider than it, and long lists are cut", () => {
  const rates = Array.from({ length: 30 }, (_, index) => ({
    owner: `ListenerSet/team-with-a-long-name-${index}/listeners`,
    listeners: 1,
    requests: 30 - index,
    errors: index,
    total: 100,
  }));
  const write = (columns: number, env: Record<string, string>): string => {
    let written = "";
    const size = (): { columns: number; rows: number } => ({ columns, rows: 12 });
    const put = (text: string): void => {
      written += text;
    };
    const terminal = terminalOn(put, { isTty: true, env, size });
    terminal.redraw(tableOf(rates, terminal));
    return written;
  };
  const narrow = write(40, { NO_COLOR: "1" });
  // Only the sequence that begins the screen anew is left without colours.
  expect(narrow.startsWith("\x1b[H\x1b[J")).toBe(true);
  const lines = narrow.slice(6).trimEnd().split("\n");
  expect(lines.every((line) => [...line].length <= 40)).toBe(true);
  expect(lines).toHaveLength(11);
  expect(narrow).not.toContain("TOTAL");
  expect(narrow).not.toContain("\x1b[31m");
  expect(narrow).toContain("… and 22 more owners");
  expect(write(100, {})).toContain("\x1b[31m");
  expect(write(100, {})).toContain("TOTAL");
});

test("events are read across the pieces in which they arrive, and comments are left out", () => {
  const reader = new EventReader();
  const bytes = new TextEncoder().encode(': hello\n\nid: 7\nevent: change\ndata: {"a":"ü"}\n\nid: 8\n');
  const events = [...bytes].flatMap((byte) => [...reader.read(Uint8Array.of(byte))]);
  expect(events).toEqual([{ id: "7", type: "change", data: '{"a":"ü"}' }]);
});
