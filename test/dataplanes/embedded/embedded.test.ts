import type { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import { createEmbeddedDataPlane } from "../../../src/dataplanes/embedded/embedded-data-plane.ts";
import { describeDataPlane } from "../contract/contract.ts";
import { ask, Backends } from "../support/http-peers.ts";
import { backend, forwardTo, host, listener, port, rule } from "../support/plan-builder.ts";
import { PlaneUnderTest } from "../support/plane-under-test.ts";

describeDataPlane("embedded, in the process", (options) =>
  createEmbeddedDataPlane({ ...options, workers: 0 }),
);
describeDataPlane("embedded, in a worker", (options) => createEmbeddedDataPlane({ ...options, workers: 1 }));

test("a worker that dies is replaced by one that serves the whole plan", async () => {
  const workers: Worker[] = [];
  const remember = (worker: Worker): void => void workers.push(worker);
  process.on("worker", remember);
  const backends = new Backends();
  const http = port(80);
  const shop = listener("shop", http, "shop.example");
  const plane = await PlaneUnderTest.start(
    (options) => createEmbeddedDataPlane({ ...options, workers: 2 }),
    [
      http,
      shop,
      host(shop, "shop.example", [rule({ action: forwardTo("b") })]),
      backend("b", [await backends.echo("b")]),
    ],
  );
  try {
    expect(workers).toHaveLength(2);
    await die(workers[0]);
    await expect.poll(() => workers.length, { timeout: 20_000 }).toBe(3);
    // Only the replacement is left to serve, and it has never seen a delta of its own.
    await die(workers[1]);
    const status = (): Promise<number> =>
      ask(plane.at(80), { host: "shop.example" }).then(
        (answer) => answer.status,
        () => 0,
      );
    await expect.poll(status, { timeout: 20_000 }).toBe(200);
  } finally {
    process.off("worker", remember);
    await plane.close();
    await backends.release();
  }
});

/** A message that no worker understands is a bug, and ends like one. */
async function die(worker: Worker | undefined): Promise<void> {
  worker?.postMessage(null);
  await new Promise((resolve) => worker?.once("exit", resolve));
}
