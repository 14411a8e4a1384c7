/** What a controller says to pods of this protocol and of the one before. */

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { PlanDigest } from "../../../../src/dataplanes/remote/protocol/plan-digest.ts";
import type {
  ControllerMessage,
  HelloMessage,
  PodMessage,
} from "../../../../src/dataplanes/remote/protocol/protocol.ts";
import { digestOf, encodeItem } from "../../../../src/dataplanes/remote/protocol/protocol.ts";
import { ReportState } from "../../../../src/dataplanes/remote/protocol/report-state.ts";
import { PlanPublisher } from "../../../../src/dataplanes/remote/publisher/plan-publisher.ts";
import type { Replica } from "../../../../src/dataplanes/remote/publisher/replica.ts";
import type { ItemReport } from "../../../../src/plan/item-report.ts";
import type { PlanItem } from "../../../../src/plan/plan.ts";

const GATEWAY = "infra/shared";
const HELLO: HelloMessage = { type: "hello", gateway: GATEWAY, pod: "pod", acknowledges: true };

function port(number: number): PlanItem {
  const id = `port:${number}`;
  return { type: "port", id, gateway: GATEWAY, transport: "tcp", port: number, protocol: "http" };
}

describe("a publisher", () => {
  let publisher: PlanPublisher;
  let told: ItemReport[];

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
    publisher = new PlanPublisher({ features: new Set(), release: "1.0" });
    told = [];
    publisher.onReport((reports) => told.push(...reports));
  });

  afterEach(async () => {
    await publisher.close();
    vi.useRealTimers();
  });

  interface Pod {
    readonly replica: Replica;
    readonly heard: ControllerMessage[];
    isClosed: boolean;
    say(message: PodMessage): void;
  }

  function admit(hello: HelloMessage): Pod {
    const heard: ControllerMessage[] = [];
    const write = (message: ControllerMessage): boolean => heard.push(message) > 0;
    const close = (): void => {
      pod.isClosed = true;
    };
    const replica = publisher.admit({ write, close }, hello, "10.0.0.1");
    const pod: Pod = {
      replica,
      heard,
      isClosed: false,
      say: (message) => expect(publisher.take(replica, message)).toBe(true),
    };
    return pod;
  }

  const apply = (...upserts: readonly PlanItem[]): void => publisher.apply({ upserts, removes: [] });
  const types = ({ heard }: Pod): readonly string[] => heard.map(({ type }) => type);

  it("asks a pod for all reports when the digests differ, at growing intervals", () => {
    const pod = admit({ ...HELLO, protocol: 2 });
    const other = new ReportState();
    other.set({ id: "port:1", of: "v1", state: "programmed" });
    for (let second = 0; second < 120; second++) {
      pod.say({ type: "report", reports: [], told: other.digest });
      vi.advanceTimersByTime(1_000);
    }
    expect(types(pod)).toEqual(Array(7).fill("tell"));
    pod.say({ type: "report", whole: true, reports: other.all(), told: other.digest });
    vi.advanceTimersByTime(60_000);
    expect(types(pod)).toHaveLength(7);
  });

  it("offers its plan to a lagging pod while it leads, and only then", () => {
    apply(port(80));
    const pod = admit({ ...HELLO, protocol: 2 });
    pod.say({ type: "report", reports: [], holds: digestOfPlan(port(80)) });
    apply(port(81));
    vi.advanceTimersByTime(30_000);
    expect(types(pod)).toEqual([]);
    publisher.lead(true);
    vi.advanceTimersByTime(30_000);
    expect(types(pod)).toEqual(["offer", "offer", "offer"]);
    pod.say({ type: "serve", have: {} });
    vi.advanceTimersByTime(30_000);
    expect(types(pod).slice(3)).toEqual(["delta"]);
  });

  it("closes the stream of a pod that has acknowledged everything and serves another digest", () => {
    apply(port(80));
    const pod = admit({ ...HELLO, protocol: 2 });
    pod.say({ type: "serve", have: {} });
    const [delta] = pod.heard;
    const state = delta?.type === "delta" ? (delta.state ?? 0) : 0;
    pod.say({ type: "acknowledge", state });
    pod.say({ type: "report", reports: [], holds: digestOfPlan(port(81)) });
    vi.advanceTimersByTime(59_000);
    expect(pod.isClosed).toBe(false);
    vi.advanceTimersByTime(2_000);
    expect(pod.isClosed).toBe(true);
  });

  it("counts every item as programmed when a pod serves the whole plan and all its reports are known", () => {
    apply(port(80));
    const pod = admit({ ...HELLO, protocol: 2 });
    const beat: PodMessage = {
      type: "report",
      reports: [],
      holds: digestOfPlan(port(80)),
      told: new ReportState().digest,
    };
    pod.say(beat);
    vi.advanceTimersByTime(5_000);
    expect(told).toEqual([{ id: "port:80", state: "programmed" }]);
  });

  describe("with a pod of protocol 1", () => {
    it("counts its reports before the item arrives, and after it has changed", () => {
      const pod = admit(HELLO);
      pod.say({ type: "report", reports: [{ id: "port:80", state: "programmed" }], holds: "" });
      apply(port(80));
      expect(told).toEqual([{ id: "port:80", state: "programmed" }]);
      apply({ ...port(80), protocol: "tls" } as PlanItem);
      vi.advanceTimersByTime(60_000);
      expect(told).toHaveLength(1);
    });

    it("sends nothing but deltas, because the pod reads every message as one", () => {
      publisher.lead(true);
      apply(port(80));
      const pod = admit(HELLO);
      pod.say({ type: "report", reports: [], holds: "something else", told: "something else" });
      vi.advanceTimersByTime(300_000);
      pod.say({ type: "serve", have: {} });
      apply(port(81));
      expect(types(pod)).toEqual(["delta", "delta"]);
    });

    it("counts every item as programmed when the pod serves the whole plan", () => {
      apply(port(80));
      const pod = admit(HELLO);
      pod.say({ type: "report", reports: [], holds: digestOfPlan(port(80)) });
      vi.advanceTimersByTime(5_000);
      expect(told).toEqual([{ id: "port:80", state: "programmed" }]);
    });
  });
});

function digestOfPlan(item: PlanItem): string {
  const digest = new PlanDigest();
  digest.toggle(digestOf(encodeItem(item)));
  return digest.text;
}
