/** The first five minutes: `npm start`, and every curl line that it prints. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { ROOT, until } from "./mergeway.ts";

const run = promisify(execFile);

test("npm start serves two teams, refuses the third, and every curl line it prints answers 200", async () => {
  const child = spawn("npm", ["start"], { cwd: ROOT, stdio: ["ignore", "pipe", "pipe"], detached: true });
  const ended = once(child, "close");
  let printed = "";
  child.stdout.on("data", (chunk: Buffer) => {
    printed += chunk.toString();
  });
  child.stderr.on("data", (chunk: Buffer) => {
    printed += chunk.toString();
  });
  onTestFinished(async () => {
    if (child.exitCode === null && child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    await ended;
  });
  await until(() => {
    if (child.exitCode !== null) throw new Error(`npm start has ended:\n${printed}`);
    return printed.includes("Ctrl-C stops it") || undefined;
  }, "the end of what npm start prints");

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
    const service =
      { "coffee.example.com": "team-coffee/coffee", "tea.example.com": "team-tea/tea" }[host] ??
      "platform/welcome";
    expect(JSON.parse(stdout.split("\n")[0] ?? "")).toMatchObject({ service, method: "GET" });
  }
  process.kill(-(child.pid ?? 0), "SIGTERM");
  await ended;
});
