import { afterEach, describe, expect, test } from "vitest";
import type { Condition } from "../../../src/api/metadata.ts";
import type { OwnerVerdict } from "../../../src/engine/verdicts/verdicts.ts";
import { announcementsOf } from "../../../src/status/events/announcements.ts";
import { type EventContent, type EventObject, EventRecorder } from "../../../src/status/events/events.ts";
import type { LiveObject } from "../../../src/status/kubernetes/live-object.ts";
import { eventually, ServerDouble } from "../../kubernetes/server-double.ts";

const SET = "ListenerSet/team-b/web";
const GATEWAY = "Gateway/platform/shared";

function condition(type: string, status: Condition["status"], reason: string, message = ""): Condition {
  return { type, status, reason, message };
}

function live(name: string, namespace: string, listeners: unknown = undefined): LiveObject {
  const status = listeners === undefined ? undefined : { listeners };
  return {
    apiVersion: "gateway.networking.k8s.io/v1",
    metadata: { name, namespace, uid: `uid-${name}` },
    status,
  };
}

const CONFLICT = [
  condition("Accepted", "False", "HostnameConflict", "taken"),
  condition("Conflicted", "True", "HostnameConflict", "taken"),
  condition("Programmed", "False", "HostnameConflict", "taken"),
];
const FINE = [
  condition("Accepted", "True", "Accepted", "fine"),
  condition("Conflicted", "False", "NoConflicts", "fine"),
  condition("Programmed", "True", "Programmed", "fine"),
];
const PENDING = [
  condition("Accepted", "True", "Accepted", "fine"),
  condition("Conflicted", "False", "NoConflicts", "fine"),
  condition("Programmed", "False", "Pending", "not yet"),
];

const VERDICT: OwnerVerdict = {
  type: "set",
  gateway: GATEWAY,
  generation: 1,
  conditions: [],
  listeners: [
    {
      name: "https",
      port: 443,
      supportedKinds: [],
      attachedRoutes: 0,
      conditions: [],
      heldBy: "ListenerSet/team-a/site#https",
    },
  ],
};

interface Told {
  readonly on: string;
  readonly type: string;
  readonly reason: string;
  readonly note: string;
}

function news(before: readonly Condition[] | undefined, after: readonly Condition[]): readonly Told[] {
  const listeners = (conditions: readonly Condition[] | undefined): unknown =>
    conditions === undefined ? undefined : [{ name: "https", conditions }];
  const write = {
    key: SET,
    verdict: VERDICT,
    before: live("web", "team-b", listeners(before)),
    after: live("web", "team-b", listeners(after)),
  };
  const find = (key: string): LiveObject | undefined =>
    key === GATEWAY ? live("shared", "platform") : key === SET ? write.after : undefined;
  return announcementsOf(write, find).map(({ regarding, content: { type, reason, note } }) => ({
    on: `${regarding.kind}/${regarding.namespace}/${regarding.name}`,
    type,
    reason,
    note,
  }));
}

describe("what a status write announces", () => {
  test("a conflict that begins: to the tenant without names, to the Gateway's owner with both", () => {
    expect(news(undefined, CONFLICT)).toEqual([
      { on: SET, type: "Warning", reason: "HostnameConflict", note: "listener https: taken" },
      {
        on: GATEWAY,
        type: "Warning",
        reason: "HostnameConflict",
        note: "listener https of ListenerSet team-b/web wants what listener https of ListenerSet team-a/site holds",
      },
    ]);
  });

  test("a conflict that ends", () => {
    expect(news(CONFLICT, FINE).map(({ on, type, reason }) => `${on} ${type} ${reason}`)).toEqual([
      `${SET} Normal ConflictResolved`,
      `${GATEWAY} Normal ConflictResolved`,
    ]);
  });

  test("what goes on, begins well or is only pending announces nothing", () => {
    expect(news(CONFLICT, CONFLICT)).toEqual([]);
    expect(news(undefined, FINE)).toEqual([]);
    expect(news(undefined, PENDING)).toEqual([]);
    expect(news(PENDING, FINE)).toEqual([]);
    expect(news(FINE, FINE)).toEqual([]);
  });

  test("a certificate that is not there yet, and then is: one cause is one Event, whatever conditions it has", () => {
    const absent = "Secret shop does not exist";
    const waiting = [
      condition("Accepted", "False", "Invalid", absent),
      condition("ResolvedRefs", "False", "InvalidCertificateRef", absent),
      condition("Programmed", "False", "Invalid", absent),
    ];
    const resolved = condition("ResolvedRefs", "True", "ResolvedRefs", "all references resolve");
    expect(news(undefined, waiting)).toEqual([
      { on: SET, type: "Warning", reason: "InvalidCertificateRef", note: `listener https: ${absent}` },
    ]);
    for (const after of [PENDING, FINE]) {
      expect(news(waiting, [...after, resolved])).toEqual([
        { on: SET, type: "Normal", reason: "ResolvedRefs", note: "listener https: all references resolve" },
      ]);
    }
  });

  test("two causes are two Events", () => {
    const both = [
      condition("ResolvedRefs", "False", "InvalidCertificateRef", "one of two certificates does not exist"),
      condition("Programmed", "False", "Invalid", "no such cipher"),
    ];
    expect(news(FINE, both).map(({ reason }) => reason)).toEqual(["InvalidCertificateRef", "Invalid"]);
  });

  test("a data plane that refuses a listener that it served", () => {
    const refused = [...FINE.slice(0, 2), condition("Programmed", "False", "Invalid", "no such cipher")];
    expect(news(FINE, refused)).toEqual([
      { on: SET, type: "Warning", reason: "Invalid", note: "listener https: no such cipher" },
    ]);
  });
});

describe("the recorder of Events", () => {
  let double: ServerDouble;
  const object = (name: string): EventObject => ({
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "Gateway",
    namespace: "platform",
    name,
    uid: name,
  });
  const content = (note: string): EventContent => ({ type: "Warning", reason: "Bad", action: "Merge", note });

  afterEach(async () => {
    await double.stop();
  });

  async function recorder(): Promise<EventRecorder> {
    double = await ServerDouble.start((_seen, answer) => answer.json({}));
    const limits = { burstPerObject: 3, refillPerObjectMs: 1e9, burst: 5, refillMs: 1e9 };
    return new EventRecorder({ client: double.client(), controllerName: "c", instance: "i", limits });
  }

  test("says the same thing of the same object once", async () => {
    const events = await recorder();
    for (let times = 0; times < 10; times++) events.record(object("a"), content("same"));
    events.record(object("b"), content("same"));
    await eventually(() => expect(double.requests).toHaveLength(2));
    expect(events.dropped).toBe(0);
    expect(double.requests[0]).toMatchObject({
      method: "POST",
      path: "/apis/events.k8s.io/v1/namespaces/platform/events",
      body: { reason: "Bad", note: "same", regarding: { kind: "Gateway", name: "a", uid: "a" } },
    });
  });

  test("no object, and not all together, can flood the cluster", async () => {
    const events = await recorder();
    for (let times = 0; times < 10; times++) events.record(object("a"), content(`a${times}`));
    for (let times = 0; times < 10; times++) events.record(object(`b${times}`), content("b"));
    await eventually(() => expect(double.requests).toHaveLength(5));
    expect(events.dropped).toBe(15);
  });

  test("a note is cut to what the API takes, by bytes", async () => {
    const events = await recorder();
    events.record(object("a"), content("ä".repeat(2000)));
    await eventually(() => expect(double.requests).toHaveLength(1));
    const { note = "" } = (double.requests[0]?.body ?? {}) as { note?: string };
    expect(Buffer.byteLength(note)).toBeLessThanOrEqual(1024);
    expect(note).toMatch(/^ä+…$/);
  });
});
