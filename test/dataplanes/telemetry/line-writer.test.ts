/** Lines on a real pipe, whose reader is slow, stopped or gone. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { LineWriter } from "../../../src/dataplanes/telemetry/line-writer.ts";

const MODULE = new URL("../../../src/dataplanes/telemetry/line-writer.ts", import.meta.url).href;

/** Writes more than the pipe and the bound hold, and says on standard error what came of it. */
const SCRIPT = `
import { LineWriter } from ${JSON.stringify(MODULE)};
let lost = 0, written = 0, ticks = 0;
const count = { onWritten: (n) => (written += n), onLost: (n) => (lost += n), onError: () => {} };
const writer = new LineWriter({ to: 1, maxBytes: 200_000, ...count });
const line = "x".repeat(999);
for (let at = 0; at < 2_000; at++) writer.write(line);
const timer = setInterval(async () => {
  if (++ticks < 20) return;
  clearInterval(timer);
  console.error(JSON.stringify({ state: "alive", lost }));
  await new Promise((resolve) => process.stdin.once("data", resolve));
  await writer.close();
  console.error(JSON.stringify({ state: "closed", lost, written }));
  process.exit(0);
}, 5);
`;

interface Said {
  readonly state: string;
  readonly lost: number;
  readonly written: number;
}

test("a pipe that nobody reads stops nothing, and what it has no room for is told as lost", async () => {
  const child = spawn(process.execPath, ["--input-type=module", "-e", SCRIPT], {
    stdio: ["pipe", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const said: Said[] = [];
  child.stderr.on("data", (chunk: Buffer) => {
    for (const line of String(chunk).trim().split("\n"))
      if (line.startsWith("{")) said.push(JSON.parse(line) as Said);
  });
  // Nobody has read a byte, and timers run.
  await expect.poll(() => said[0]?.state, { timeout: 20_000 }).toBe("alive");
  expect(said[0]?.lost).toBeGreaterThan(1_000);
  let lines = 0;
  child.stdout.on("data", (chunk: Buffer) => {
    lines += chunk.filter((byte) => byte === 10).length;
  });
  child.stdin.write("go on\n");
  await once(child, "close");
  expect(said[1]).toMatchObject({ state: "closed" });
  expect(lines).toBe(said[1]?.written);
  expect((said[1]?.written ?? 0) + (said[1]?.lost ?? 0)).toBe(2_000);
});

test("a file gets every line, and is appended to", async () => {
  const folder = mkdtempSync(join(tmpdir(), "mergeway-lines-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const to = join(folder, "log");
  let written = 0;
  for (const round of [1, 2]) {
    const writer = new LineWriter({
      to,
      onWritten: (lines) => {
        written += lines;
      },
      onLost: () => expect.unreachable(),
      onError: (error) => expect.unreachable(error.message),
    });
    for (let at = 0; at < 1_000; at++) writer.write(`${round}.${at}`);
    await writer.close();
  }
  const lines = readFileSync(to, "utf8").trimEnd().split("\n");
  expect(lines).toHaveLength(2_000);
  expect(lines.at(-1)).toBe("2.999");
  expect(written).toBe(2_000);
});

test("a device that is full loses lines, and tells the trouble once", async () => {
  const problems: string[] = [];
  let lost = 0;
  const writer = new LineWriter({
    to: "/dev/full",
    onWritten: () => expect.unreachable(),
    onLost: (lines) => {
      lost += lines;
    },
    onError: (error) => problems.push(error.message),
  });
  for (let at = 0; at < 3; at++) {
    writer.write("line");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await writer.close();
  expect(lost).toBe(3);
  expect(problems).toEqual([expect.stringContaining("ENOSPC")]);
});
