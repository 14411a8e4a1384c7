import { describe, expect, test } from "vitest";
import { WorkQueue } from "../../../src/status/scheduling/work-queue.ts";

const namespaceOf = (name: string): string => name.split("/")[0] ?? "";

async function take(queue: WorkQueue, count: number): Promise<readonly (string | undefined)[]> {
  const taken: (string | undefined)[] = [];
  for (let i = 0; i < count; i++) {
    const name = await queue.next();
    taken.push(name);
    if (name !== undefined) queue.done(name);
  }
  return taken;
}

describe("a queue of work", () => {
  test("does not let a namespace with ten thousand objects keep another waiting", async () => {
    const queue = new WorkQueue(namespaceOf);
    for (let i = 0; i < 10_000; i++) queue.add(`mallory/${i}`);
    queue.add("alice/web");
    queue.add("bob/web");
    queue.add("alice/api");
    expect(await take(queue, 6)).toEqual([
      "mallory/0",
      "alice/web",
      "bob/web",
      "mallory/1",
      "alice/api",
      "mallory/2",
    ]);
    expect(queue.size).toBe(9_997);
  });

  test("keeps the order within a namespace, each name once", async () => {
    const queue = new WorkQueue(namespaceOf);
    for (const name of ["a/2", "a/1", "a/2", "a/3"]) queue.add(name);
    expect(await take(queue, 3)).toEqual(["a/2", "a/1", "a/3"]);
    expect(queue.size).toBe(0);
  });

  test("hands a name to one worker at a time, and again when it was asked for meanwhile", async () => {
    const queue = new WorkQueue(namespaceOf);
    queue.add("a/1");
    expect(await queue.next()).toBe("a/1");
    queue.add("a/1");
    queue.add("a/2");
    expect(await queue.next()).toBe("a/2");
    queue.done("a/1");
    expect(await queue.next()).toBe("a/1");
  });

  test("gives nothing more once it is closed", async () => {
    const queue = new WorkQueue(namespaceOf);
    const waiting = queue.next();
    queue.close();
    expect(await waiting).toBeUndefined();
    queue.add("a/1");
    expect(await queue.next()).toBeUndefined();
    expect(queue.size).toBe(0);
  });
});
