import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Key } from "../../../src/api/key.ts";
import type { Condition } from "../../../src/api/metadata.ts";
import type { Resource } from "../../../src/api/resource.ts";
import type { ObjectVerdict } from "../../../src/engine/verdicts/verdicts.ts";
import { StatusWriter } from "../../../src/status/kubernetes/writer.ts";
import type { StatusTiming } from "../../../src/status/scheduling/timing.ts";
import { type Answer, eventually, type Seen, ServerDouble } from "../../kubernetes/server-double.ts";

const OURS = "mergeway.dev/controller";
const KEY = "HTTPRoute/shop/web";
const PATH = "/apis/gateway.networking.k8s.io/v1/namespaces/shop/httproutes/web";
const FAST: Partial<StatusTiming> = {
  settleMs: 1,
  gatherMs: 1,
  intervalMs: 1,
  firstBackoffMs: 1,
  mostBackoffMs: 5,
  contestedMs: 1,
};

interface Stored {
  metadata: { name: string; namespace: string; uid: string; generation: number; resourceVersion: string };
  status: Record<string, unknown>;
}

let double: ServerDouble;
let stored: Stored;
let writer: StatusWriter;
let resign: () => Promise<void>;
/** What goes wrong before the write is looked at. */
let interfere: ((seen: Seen, answer: Answer) => boolean)[];
/** Fields of the status that the server's CRD does not know. */
let unknown: readonly string[];
let rewrites: number;
/** Seconds from the watch event to the status, as told; and kinds whose status was contested. */
let told: number[];
let contestedKinds: string[];

function bump(): void {
  stored.metadata.resourceVersion = String(Number(stored.metadata.resourceVersion) + 1);
}

function serve(seen: Seen, answer: Answer): void {
  if (seen.method === "GET") {
    answer.json(stored);
    return;
  }
  if (interfere.shift()?.(seen, answer)) return;
  const patch = seen.body as { metadata: { resourceVersion: string }; status: Record<string, unknown> };
  if (patch.metadata.resourceVersion !== stored.metadata.resourceVersion) {
    answer.refuse(409, "Conflict");
    return;
  }
  for (const [field, value] of Object.entries(patch.status)) {
    if (!unknown.includes(field)) stored.status[field] = value;
  }
  bump();
  answer.json(stored);
}

function resource(): Resource {
  const { metadata, status } = structuredClone(stored);
  const apiVersion = "gateway.networking.k8s.io/v1";
  return { apiVersion, kind: "HTTPRoute", metadata, spec: {}, status } as unknown as Resource;
}

function verdict(message: string, generation = 1): ObjectVerdict {
  const parentRef = { group: "gateway.networking.k8s.io", kind: "Gateway", name: "gw" };
  const conditions = [{ type: "Accepted", status: "True", reason: "Accepted", message }] as const;
  return { type: "route", generation, parents: [{ parentRef, conditions }] };
}

const FOREIGN = {
  parentRef: { name: "gw" },
  controllerName: "other.example/controller",
  conditions: [{ type: "Accepted", status: "False", reason: "Theirs", message: "", newer: { field: 1 } }],
};

function patches(): readonly Seen[] {
  return double.requests.filter(({ method }) => method === "PATCH");
}

function ours(): { conditions: readonly Condition[] } | undefined {
  const parents = (stored.status["parents"] ?? []) as { controllerName: string; conditions: Condition[] }[];
  return parents.find(({ controllerName }) => controllerName === OURS);
}

function judge(key: Key, said: ObjectVerdict | undefined): void {
  writer.judge([[key, said]]);
}

beforeEach(async () => {
  interfere = [];
  unknown = [];
  rewrites = 0;
  told = [];
  contestedKinds = [];
  stored = {
    metadata: { name: "web", namespace: "shop", uid: "u1", generation: 1, resourceVersion: "10" },
    status: { parents: [FOREIGN] },
  };
  double = await ServerDouble.start(serve);
  writer = new StatusWriter({
    client: double.client(),
    controllerName: OURS,
    features: () => new Set(),
    installed: () => ({ bundleVersions: ["v1.7.0"], isKnown: true }),
    timing: FAST,
    onContested: () => {
      rewrites++;
    },
    observer: {
      onStatusTold: ({ seconds }) => told.push(seconds),
      onStatusContested: ({ kind }) => contestedKinds.push(kind),
    },
  });
  writer.observe([{ key: KEY, resource: resource() }]);
  const abort = new AbortController();
  const work = writer.run(abort.signal);
  resign = async () => {
    abort.abort();
    await work;
  };
});

afterEach(async () => {
  await resign();
  await double.stop();
});

describe("the status writer", () => {
  test("writes its own entry under the version it has read, beside others' as they were", async () => {
    judge(KEY, verdict("fine"));
    await eventually(() =>
      expect(ours()?.conditions[0]).toMatchObject({ message: "fine", observedGeneration: 1 }),
    );
    expect((stored.status["parents"] as unknown[])[0]).toEqual(FOREIGN);
    expect(patches()[0]).toMatchObject({
      path: `${PATH}/status`,
      body: { metadata: { resourceVersion: "10" } },
      headers: { "content-type": "application/merge-patch+json" },
    });
    expect(patches()[0]?.query.get("fieldManager")).toBe("mergeway");
  });

  test("a conflict is read and merged again: what came in between stays", async () => {
    const late = { ...FOREIGN, controllerName: "late.example/controller" };
    interfere.push(() => {
      stored.status["parents"] = [FOREIGN, late];
      bump();
      return false;
    });
    judge(KEY, verdict("fine"));
    await eventually(() => expect(ours()).toBeDefined());
    expect((stored.status["parents"] as unknown[]).slice(0, 2)).toEqual([FOREIGN, late]);
    expect(patches()).toHaveLength(2);
  });

  test("a server in trouble is asked again; the newest verdict is what gets written", async () => {
    interfere.push(
      (_seen, answer) => {
        answer.refuse(500, "InternalError");
        return true;
      },
      (_seen, answer) => {
        answer.refuse(429, "TooManyRequests", { "retry-after": "0" });
        return true;
      },
      (_seen, answer) => {
        judge(KEY, verdict("newest"));
        answer.breakOff();
        return true;
      },
    );
    judge(KEY, verdict("older"));
    await eventually(() => expect(ours()?.conditions[0]?.message).toBe("newest"));
    expect(JSON.stringify(stored)).not.toContain("older");
  });

  test("a server that does not know its custom resources yet is asked again, whether to write or to read", async () => {
    const isStarting = (_seen: Seen, answer: Answer): boolean => {
      answer.refuse(404, "NotFound");
      return true;
    };
    interfere.push(isStarting, isStarting);
    judge(KEY, verdict("fine"));
    await eventually(() => expect(ours()?.conditions[0]?.message).toBe("fine"));
    // After a conflict the object is read, and the server has just been started again.
    interfere.push((_seen, answer) => {
      bump();
      double.answerWith((seen, given) => {
        given.refuse(404, "NotFound");
        if (seen.method === "GET") double.answerWith(serve);
      });
      answer.refuse(409, "Conflict");
      return true;
    });
    judge(KEY, verdict("fine again"));
    await eventually(() => expect(ours()?.conditions[0]?.message).toBe("fine again"));
  });

  test("an object that is gone is not asked for any more", async () => {
    double.answerWith((_seen, answer) => answer.refuse(404, "NotFound"));
    judge(KEY, verdict("fine"));
    await eventually(() => expect(patches().length).toBeGreaterThan(1));
    writer.observe([{ key: KEY, resource: undefined }]);
    await eventually(() => expect(writer.backlog).toBe(0));
    const before = double.requests.length;
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(double.requests).toHaveLength(before);
  });

  test("a status that the server refuses does not keep others from being written", async () => {
    const refuse = (seen: Seen, answer: Answer): boolean => {
      if (!seen.path.includes("/refused/")) return false;
      answer.refuse(422, "Invalid");
      return true;
    };
    double.answerWith((seen, answer) => {
      if (seen.method === "PATCH" && refuse(seen, answer)) return;
      serve(seen, answer);
    });
    const other = resource();
    const refused = { ...other, metadata: { ...other.metadata, name: "refused" } } as Resource;
    writer.observe([{ key: "HTTPRoute/shop/refused", resource: refused }]);
    writer.judge([
      ["HTTPRoute/shop/refused", verdict("never")],
      [KEY, verdict("fine")],
    ]);
    await eventually(() => expect(ours()).toBeDefined());
  });

  test("what is already there is not written, neither by this leader nor by the next", async () => {
    judge(KEY, verdict("fine"));
    await eventually(() => expect(patches()).toHaveLength(1));
    writer.observe([{ key: KEY, resource: resource() }]);
    judge(KEY, verdict("fine"));
    await resign();
    const abort = new AbortController();
    const work = writer.run(abort.signal);
    judge(KEY, verdict("changed"));
    await eventually(() => expect(ours()?.conditions[0]?.message).toBe("changed"));
    expect(patches()).toHaveLength(2);
    abort.abort();
    await work;
  });

  test("times move only with the status of a condition", async () => {
    const conditions = [
      {
        ...FOREIGN.conditions[0],
        type: "Accepted",
        status: "True",
        lastTransitionTime: "2020-01-01T00:00:00Z",
      },
    ];
    const parentRef = { group: "gateway.networking.k8s.io", kind: "Gateway", name: "gw" };
    stored.status["parents"] = [{ parentRef, controllerName: OURS, conditions }];
    bump();
    writer.observe([{ key: KEY, resource: resource() }]);
    judge(KEY, verdict("other words"));
    await eventually(() => expect(ours()?.conditions[0]?.message).toBe("other words"));
    expect(ours()?.conditions[0]?.lastTransitionTime).toBe("2020-01-01T00:00:00Z");
  });

  test("a verdict on an older generation is not written over a newer object", async () => {
    stored.metadata.generation = 2;
    bump();
    writer.observe([{ key: KEY, resource: resource() }]);
    judge(KEY, verdict("about the first"));
    judge(KEY, verdict("about the second", 2));
    await eventually(() => expect(ours()?.conditions[0]).toMatchObject({ observedGeneration: 2 }));
    expect(JSON.stringify(patches().map(({ body }) => body))).not.toContain("about the first");
  });

  test("entries that no longer apply are taken out, also those of a former leader", async () => {
    stored.status["parents"] = [
      FOREIGN,
      { parentRef: { name: "old" }, controllerName: OURS, conditions: [] },
    ];
    bump();
    writer.observe([{ key: KEY, resource: resource() }]);
    await eventually(() => expect(stored.status["parents"]).toEqual([FOREIGN]));
  });

  test("a field that the server drops is not written for ever", async () => {
    const key = "Gateway/shop/gw";
    unknown = ["attachedListenerSets"];
    stored.status = {};
    const gateway = { ...resource(), kind: "Gateway" } as Resource;
    writer.observe([{ key, resource: gateway }]);
    const said = (message: string): ObjectVerdict => ({
      type: "gateway",
      gateway: key,
      generation: 1,
      conditions: [{ type: "Accepted", status: "True", reason: "Accepted", message }],
      listeners: [],
      addresses: [],
      attachedListenerSets: 3,
    });
    judge(key, said("one"));
    await eventually(() => expect(patches()).toHaveLength(1));
    for (let round = 0; round < 5; round++) {
      bump();
      writer.observe([{ key, resource: { ...resource(), kind: "Gateway" } as Resource }]);
    }
    judge(key, said("two"));
    await eventually(() => expect(JSON.stringify(stored.status)).toContain("two"));
    expect(patches()).toHaveLength(2);
    const second = (patches()[1]?.body ?? {}) as { status?: object };
    expect(Object.keys(second.status ?? {})).toEqual(["conditions"]);
  });

  test("a new leader does not unsay what it may only not know yet, but says at once what it knows", async () => {
    const key = "Gateway/shop/gw";
    const programmed = (status: "True" | "False", reason: string, at = {}): object => ({
      type: "Programmed",
      status,
      reason,
      message: reason,
      ...at,
    });
    const time = { observedGeneration: 1, lastTransitionTime: "2026-01-01T00:00:00Z" };
    const addresses = [{ type: "IPAddress", value: "192.0.2.1" }];
    const conditions = [programmed("True", "Programmed", time)];
    stored.status = { addresses, attachedListenerSets: 0, conditions };
    bump();
    writer.observe([{ key, resource: { ...resource(), kind: "Gateway" } as Resource }]);
    const said = (condition: object, known: readonly unknown[]): ObjectVerdict =>
      ({
        type: "gateway",
        gateway: key,
        generation: 1,
        conditions: [condition],
        listeners: [],
        addresses: known,
      }) as never;
    judge(key, said(programmed("False", "Pending"), addresses));
    judge(KEY, verdict("probe"));
    await eventually(() => expect(ours()?.conditions[0]?.message).toBe("probe"));
    judge(key, said(programmed("True", "Programmed"), []));
    judge(KEY, verdict("second probe"));
    await eventually(() => expect(ours()?.conditions[0]?.message).toBe("second probe"));
    expect(patches().filter(({ path }) => path.includes("/gateways/"))).toEqual([]);
    judge(key, said(programmed("False", "AddressNotUsable"), addresses));
    await eventually(() => expect(JSON.stringify(stored.status)).toContain("AddressNotUsable"));
  });

  test("whoever keeps undoing our entry is noticed", async () => {
    judge(KEY, verdict("fine"));
    for (let round = 1; round <= 4; round++) {
      await eventually(() => expect(ours()).toBeDefined());
      stored.status["parents"] = [FOREIGN];
      bump();
      writer.observe([{ key: KEY, resource: resource() }]);
      await eventually(() => expect(rewrites).toBe(round));
    }
    expect(contestedKinds).toEqual(Array.from({ length: 4 }, () => "HTTPRoute"));
  });

  test("the time from what was watched to the status is told once, and not of what nobody changed", async () => {
    const since = performance.now() - 5_000;
    writer.judge([[KEY, verdict("fine")]], since);
    writer.judge([[KEY, verdict("finer")]], performance.now());
    await eventually(() => expect(ours()?.conditions[0]?.message).toBe("finer"));
    await eventually(() => expect(told).toHaveLength(1));
    expect(told[0]).toBeGreaterThanOrEqual(5);
    judge(KEY, verdict("by a report of a data plane"));
    await eventually(() => expect(ours()?.conditions[0]?.message).toContain("report"));
    expect(told).toHaveLength(1);
  });
});
