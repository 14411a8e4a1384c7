/** Objects that are fetched when they are wanted, beside a watch that may be ahead of the fetch. */
import { expect, onTestFinished, test } from "vitest";
import type { Key } from "../../../src/api/key.ts";
import type { Resource } from "../../../src/api/resource.ts";
import { ApiError } from "../../../src/kubernetes/api-error.ts";
import type { ApiObject } from "../../../src/kubernetes/api-object.ts";
import type { KubernetesClient } from "../../../src/kubernetes/client.ts";
import { OnDemand } from "../../../src/sources/kubernetes/on-demand.ts";

const SECRET: Key = "Secret/team/certificate";

/** Answers of an API server that come when the test says so, with what was there when it asked. */
class SlowServer {
  object: ApiObject | undefined;
  readonly #answers: (() => void)[] = [];

  readonly client: Pick<KubernetesClient, "request"> = {
    request: <T>() => {
      const { object } = this;
      return new Promise<T>((resolve, reject) => {
        this.#answers.push(() => {
          if (object === undefined)
            reject(new ApiError({ status: 404, code: "NotFound", message: "not found" }));
          else resolve(object as T);
        });
      });
    },
  };

  get asked(): number {
    return this.#answers.length;
  }

  async answer(): Promise<void> {
    await expect.poll(() => this.asked).toBeGreaterThan(0);
    this.#answers.shift()?.();
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function secret(resourceVersion: string): ApiObject {
  return { metadata: { namespace: "team", name: "certificate", resourceVersion } };
}

test("an object that is deleted while it is fetched is gone, however late the answer is", async () => {
  const server = new SlowServer();
  const known = new Map<Key, Resource>();
  const stopped = new AbortController();
  onTestFinished(() => stopped.abort());
  const onDemand = new OnDemand({
    client: server.client as KubernetesClient,
    shape: (_kind, object) => ({ resource: object as unknown as Resource }),
    emit: (key, resource) => void (resource === undefined ? known.delete(key) : known.set(key, resource)),
    onRead: () => {},
    isReadable: () => true,
    signal: stopped.signal,
  });
  onDemand.want(SECRET);
  await server.answer();
  expect(known.size).toBe(0);

  server.object = secret("1");
  onDemand.announce(SECRET, "1");
  server.object = undefined;
  // The server has read the object already, and the watch is ahead of its answer.
  onDemand.announce(SECRET, "");
  await server.answer();
  await server.answer();
  expect(known.size).toBe(0);
  expect(server.asked).toBe(0);
});
