/** `npm start`, every curl line that it prints, and the commands of the README. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { ROOT, until } from "../mergeway.ts";

const run = promisify(execFile);

/** Runs `npm start` until its output is complete, and kills it when the test ends. */
async function npmStart(): Promise<{ readonly printed: string; stop(): Promise<void> }> {
  const child = spawn("npm", ["start"], { cwd: ROOT, stdio: ["ignore", "pipe", "pipe"], detached: true });
  const ended = once(child, "close");
  // Apart: two pipes have no order among each other, and the log must not stand within the text.
  let printed = "";
  let logged = "";
  child.stdout.on("data", (chunk: Buffer) => {
    printed += chunk.toString();
  });
  child.stderr.on("data", (chunk: Buffer) => {
    logged += chunk.toString();
  });
  const end = (signal: NodeJS.Signals): void => {
    // The group: npm, its shell and the program.
    if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, signal);
  };
  onTestFinished(async () => {
    end("SIGKILL");
    await ended;
  });
  await until(() => {
    if (child.exitCode !== null) throw new Error(`npm start has ended:\n${printed}${logged}`);
    return printed.includes("Ctrl-C stops it") || undefined;
  }, "the end of what npm start prints");
  return {
    printed,
    stop: async () => {
      end("SIGTERM");
      await ended;
    },
  };
}

test("npm start serves two teams, refuses the third, and every curl line it prints answers 200", async () => {
  const { printed, stop } = await npmStart();
  expect(printed).toMatch(
    /ListenerSet team-coffee\/coffee +https +8443 +HTTPS +coffee\.example\.com +team-coffee\/coffee-cert +1 +serving/,
  );
  expect(printed).toMatch(
    /ListenerSet team-zest\/zest, listener https: HostnameConflict\n.*already held.*\n +held by ListenerSet team-coffee\/coffee, listener https/,
  );
  const lines = printed.split("\n").filter((line) => line.startsWith("curl "));
  expect(lines).toHaveLength(6);
  for (const line of lines) {
    const { stdout } = await run("bash", [
      "-c",
      `${line} --silent --show-error --max-time 20 --write-out '\\n%{http_code}'`,
    ]);
    expect(stdout, line).toMatch(/\n200$/);
    const [, host = ""] = /--resolve ([^:]+)/.exec(line) ?? [];
    expect(JSON.parse(stdout.split("\n")[0] ?? "")).toMatchObject({
      service: SERVICES[host] ?? "platform/welcome",
    });
  }
  await stop();
}, 180_000);

const SERVICES: Readonly<Record<string, string>> = {
  "coffee.example.com": "team-coffee/coffee",
  "tea.example.com": "team-tea/tea",
};

/** Lines that the test has already run, or that would run this test again. */
const DONE_ALREADY = new Set(["npm ci", "npm start", "npm test"]);

test("the commands of the README work as written", async () => {
  const readme = readFileSync(join(ROOT, "README.md"), "utf8");
  const lines = Array.from(readme.matchAll(/```sh\n([\s\S]*?)```/g), ([, block = ""]) =>
    block.trimEnd().split("\n"),
  ).flat();
  for (const line of DONE_ALREADY) expect(lines).toContain(line);
  const commands = lines.filter((line) => !DONE_ALREADY.has(line));
  expect(commands.length).toBeGreaterThan(3);
  const { stop } = await npmStart();
  for (const command of commands) {
    const { stdout } = await run("bash", ["-c", command], { cwd: ROOT });
    expect(stdout, command).toContain("team-coffee");
  }
  await stop();
}, 180_000);
