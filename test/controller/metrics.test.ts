import { describe, expect, test } from "vitest";
import { CONTROLLER_METRICS } from "../../src/controller/metric-table.ts";
import { ControllerMetrics } from "../../src/controller/metrics.ts";
import { RefusalLog } from "../../src/controller/pod-stream/refusal-log.ts";
import type { ReplicaLag } from "../../src/dataplanes/remote/publisher/replica.ts";

const VIOLATIONS = [{ gateway: "Gateway/infra/shared", listeners: 2, routes: 0 }];

/** `name{labels} value` of one metric, without comments. */
async function samples(metrics: ControllerMetrics, name: string): Promise<readonly string[]> {
  const lines = (await metrics.exposition()).split("\n");
  return lines.filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
}

function reading(metrics: ControllerMetrics, lags: () => readonly ReplicaLag[] = () => []): void {
  const confirmed = new Map([["infra/shared", { replicas: 2, lagging: ["b"] }]]);
  metrics.read({
    backlog: () => 7,
    lags,
    confirmed: () => confirmed,
    eventsDropped: () => 3,
    listeners: () => [{ gateway: "infra/shared", state: "conflicted", count: 2 }],
    violations: () => VIOLATIONS,
    quotas: () => [{ gateway: "infra/shared", namespace: "team", resource: "listeners", used: 9, limit: 10 }],
    claims: () => [{ gateway: "Gateway/infra/shared", held: 4, unheld: 1 }],
  });
}

describe("metrics of the controller", () => {
  test("are those of the table", async () => {
    const metrics = new ControllerMetrics();
    reading(metrics);
    const exposed = [...(await metrics.exposition()).matchAll(/^# TYPE (mergeway_\w+) (\w+)$/gm)];
    expect(Object.fromEntries(exposed.map(([, name, type]) => [name, type]))).toEqual(
      Object.fromEntries(Object.entries(CONTROLLER_METRICS).map(([name, { type }]) => [name, type])),
    );
  });

  test("count listeners by Gateway and state, and name no tenant", async () => {
    const metrics = new ControllerMetrics();
    reading(metrics);
    expect(await samples(metrics, "mergeway_listeners")).toEqual([
      'mergeway_listeners{gateway="infra/shared",state="conflicted"} 2',
    ]);
  });

  test("count what is against the TenantPolicy of a Gateway", async () => {
    const metrics = new ControllerMetrics();
    reading(metrics);
    expect(await samples(metrics, "mergeway_tenant_policy_violations")).toEqual([
      'mergeway_tenant_policy_violations{gateway="infra/shared",kind="listener"} 2',
      'mergeway_tenant_policy_violations{gateway="infra/shared",kind="route"} 0',
    ]);
  });

  test("tell use and limit of a quota", async () => {
    const metrics = new ControllerMetrics();
    reading(metrics);
    const labels = '{gateway="infra/shared",tenant_namespace="team",resource="listeners"}';
    expect(await samples(metrics, "mergeway_tenant_quota_used")).toEqual([
      `mergeway_tenant_quota_used${labels} 9`,
    ]);
    expect(await samples(metrics, "mergeway_tenant_quota_limit")).toEqual([
      `mergeway_tenant_quota_limit${labels} 10`,
    ]);
  });

  test("tell the propagation of a change, stage by stage", async () => {
    const metrics = new ControllerMetrics();
    metrics.propagated("sent", 0.02);
    metrics.propagated("sent", 0.7);
    metrics.propagated("acknowledged", 1.2);
    const name = "mergeway_propagation_seconds";
    expect(await samples(metrics, `${name}_count`)).toEqual([
      `${name}_count{stage="sent"} 2`,
      `${name}_count{stage="acknowledged"} 1`,
    ]);
    const buckets = await samples(metrics, `${name}_bucket`);
    expect(buckets).toContain(`${name}_bucket{le="0.025",stage="sent"} 1`);
    expect(buckets).toContain(`${name}_bucket{le="1",stage="acknowledged"} 0`);
    expect(buckets).toContain(`${name}_bucket{le="2.5",stage="acknowledged"} 1`);
  });

  test("show a pod that lags while it is connected, and not for longer", async () => {
    const metrics = new ControllerMetrics();
    let lags: readonly ReplicaLag[] = [
      { gateway: "infra/shared", pod: "a", unsent: 0, unacknowledgedSeconds: 0 },
      { gateway: "infra/shared", pod: "b", unsent: 40, unacknowledgedSeconds: 12.5 },
    ];
    reading(metrics, () => lags);
    expect(await samples(metrics, "mergeway_data_plane_unacknowledged_seconds")).toEqual([
      'mergeway_data_plane_unacknowledged_seconds{gateway="infra/shared",pod="a"} 0',
      'mergeway_data_plane_unacknowledged_seconds{gateway="infra/shared",pod="b"} 12.5',
    ]);
    expect(await samples(metrics, "mergeway_data_plane_unsent_items")).toContain(
      'mergeway_data_plane_unsent_items{gateway="infra/shared",pod="b"} 40',
    );
    lags = [];
    expect(await samples(metrics, "mergeway_data_plane_unsent_items")).toEqual([]);
  });

  test("are read when somebody asks", async () => {
    const metrics = new ControllerMetrics();
    reading(metrics);
    for (const _ of [1, 2]) {
      expect(await samples(metrics, "mergeway_events_dropped_total")).toEqual([
        "mergeway_events_dropped_total 3",
      ]);
      expect(await samples(metrics, "mergeway_status_backlog")).toEqual(["mergeway_status_backlog 7"]);
      expect(await samples(metrics, "mergeway_data_plane_lagging_replicas")).toEqual([
        'mergeway_data_plane_lagging_replicas{gateway="infra/shared"} 1',
      ]);
    }
  });
});

describe("the log of refusals", () => {
  const refusal = { reason: "identity", peer: "10.0.0.1", claim: { gateway: "a/b", pod: "c" } } as const;

  test("says who wanted what, and why not", () => {
    expect(new RefusalLog().line(refusal)).toBe(
      "a peer at 10.0.0.1 was refused the plan of Gateway a/b as pod c: its token is not that of such a pod",
    );
  });

  test("is not flooded by one peer", () => {
    let now = 0;
    const log = new RefusalLog(() => now);
    expect(log.line(refusal)).toBeDefined();
    expect(log.line(refusal)).toBeUndefined();
    expect(log.line({ ...refusal, peer: "10.0.0.2" })).toBeDefined();
    expect(log.line({ ...refusal, reason: "token" })).toBeDefined();
    now = 61_000;
    expect(log.line(refusal)).toBeDefined();
  });
});
