/** What the kubelet and Prometheus get of a pod that serves in threads of their own. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { PodAdmin } from "../../src/agent/admin.ts";
import { openProbes } from "../../src/agent/probes.ts";

async function opened(admin: PodAdmin): Promise<string> {
  const directory = mkdtempSync(join(tmpdir(), "probes-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const server = await openProbes("127.0.0.1:0", admin, join(directory, "admin.sock"));
  onTestFinished(() => server.close());
  return `http://127.0.0.1:${server.port}`;
}

/** Asks from another process. This thread does nothing until there is an answer. */
function statusOf(url: string): string {
  return execFileSync("curl", ["-s", "-m", "10", "-o", "/dev/null", "-w", "%{http_code}", url]).toString();
}

test("a pod stays ready while its main thread is busy", async () => {
  const url = await opened({ isStarted: () => true, isReady: () => true });
  expect(statusOf(`${url}/readyz`)).toBe("200");
  expect(statusOf(`${url}/startz`)).toBe("200");
  expect(statusOf(`${url}/healthz`)).toBe("200");
});

test("a pod that may not get traffic is not ready, and is when it may", async () => {
  let isReady = false;
  const url = await opened({ isStarted: () => isReady, isReady: () => isReady });
  expect(statusOf(`${url}/readyz`)).toBe("503");
  expect(statusOf(`${url}/startz`)).toBe("503");
  isReady = true;
  await expect.poll(() => statusOf(`${url}/readyz`)).toBe("200");
  isReady = false;
  await expect.poll(() => statusOf(`${url}/readyz`)).toBe("503");
});

test("whatever is no probe is answered by the main thread", async () => {
  const metrics = { contentType: "text/plain; version=0.0.4", text: () => Promise.resolve("up 1\n") };
  const url = await opened({ isStarted: () => true, isReady: () => true, metrics });
  const response = await fetch(`${url}/metrics`);
  expect(response.headers.get("content-type")).toBe(metrics.contentType);
  expect(await response.text()).toBe("up 1\n");
  expect((await fetch(`${url}/else`)).status).toBe(404);
  expect((await fetch(`${url}/drain`, { method: "POST" })).status).toBe(403);
});

test("an address that is taken is an error, not a pod that is never asked", async () => {
  const url = await opened({ isStarted: () => true, isReady: () => true });
  const directory = mkdtempSync(join(tmpdir(), "probes-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const taken = openProbes(
    new URL(url).host,
    { isStarted: () => true, isReady: () => true },
    join(directory, "admin.sock"),
  );
  await expect(taken).rejects.toThrow(/EADDRINUSE/);
});
