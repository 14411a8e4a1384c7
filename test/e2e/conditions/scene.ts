/**
 * A Gateway that all sets of the tests want to belong to, and the words in which they speak about
 * conditions.
 */
import { expect } from "vitest";
import type { Condition } from "../../../src/api/metadata.ts";
import { ok } from "../../../tools/cluster/bed.ts";
import { selfSigned } from "../../dataplanes/support/certificates.ts";
import { nextSecond } from "../../support/eventually.ts";
import {
  eventually,
  gateway,
  http,
  listenerOf,
  listenerSet,
  type Named,
  type ParentStatus,
  type Place,
  ServedCluster,
  type Stored,
  said,
  tlsSecret,
} from "../support/served-cluster.ts";

export const SHARED: Place = { namespace: "infra", name: "shared" };
export const MAX_LISTENERS = 12;
type Conditions = Readonly<Record<string, string>>;
export const NOT_ALLOWED: Conditions = { Accepted: "False/NotAllowed", Programmed: "False/NotAllowed" };
export const NOT_VALID: Conditions = {
  Accepted: "False/ListenersNotValid",
  Programmed: "False/ListenersNotValid",
};
export const certificate: ReturnType<typeof selfSigned> = selfSigned(["*.example.com"]);

export function sharedWith(spec: object): Named {
  return gateway(SHARED, {
    allowedListeners: { namespaces: { from: "Selector", selector: { matchLabels: { listeners: "yes" } } } },
    listeners: [http("gw-80", "gw.example.com"), http("gw-8080", "gw.example.com", 8080)],
    ...spec,
  });
}
export const shared: Named = sharedWith({});

export function namespace(name: string, listeners: string): Named {
  return { apiVersion: "v1", kind: "Namespace", metadata: { name, labels: { listeners } } } as Named;
}

export function set(home: string, name: string, ...listeners: readonly object[]): Named {
  return listenerSet({ namespace: home, name }, SHARED, listeners);
}

export class Scene {
  readonly cluster: ServedCluster;
  /** Of the shared Gateway. */
  address = "";

  private constructor(cluster: ServedCluster) {
    this.cluster = cluster;
  }

  static async up(name: string): Promise<Scene> {
    const cluster = await ServedCluster.up(name, [
      `--set=controller.maxListenersPerGateway=${MAX_LISTENERS}`,
    ]);
    const scene = new Scene(cluster);
    await cluster.namespaceWithBackend("infra");
    await cluster.namespaceWithBackend("team-a", { listeners: "yes" });
    for (const each of ["team-b", "certs"]) await cluster.apply(namespace(each, "yes"));
    await cluster.apply(shared, tlsSecret({ namespace: "certs", name: "wild" }, certificate));
    scene.address = await cluster.addressOf(shared);
    return scene;
  }

  /** Leaves the shared Gateway alone with itself. */
  async clear(): Promise<void> {
    const kinds = "listenersets,httproutes,grpcroutes,referencegrants";
    await ok(this.cluster.bed.kubectl(["delete", kinds, "--all", "--all-namespaces"]));
    await this.counts(0);
  }

  says(object: Named, conditions: Conditions): Promise<Stored> {
    return this.cluster.settled(object, ({ status }) => expect(said(status)).toEqual(conditions));
  }

  entrySays(object: Named, name: string, conditions: Conditions): Promise<Stored> {
    return this.cluster.settled(object, (stored) =>
      expect(said(listenerOf(stored, name)), name).toMatchObject(conditions),
    );
  }

  async counts(sets: number): Promise<void> {
    await this.cluster.settled(shared, ({ status }) => expect(status?.attachedListenerSets ?? 0).toBe(sets));
  }

  async parentsOf(route: Named): Promise<readonly ParentStatus[]> {
    return (await this.cluster.get(route)).status?.parents ?? [];
  }

  async accepts(route: Named, ...expected: readonly string[]): Promise<void> {
    await eventually(async () => {
      const parents = await this.parentsOf(route);
      expect(parents.map((parent) => said(parent)["Accepted"])).toEqual(expected);
    });
  }

  /**
   * Makes a change and waits until the condition says something else; its time must move, and only
   * then.
   */
  async turns(
    object: Named,
    find: (stored: Stored) => Condition,
    expected: string,
    change: () => Promise<void>,
  ): Promise<void> {
    const before = find(await this.cluster.get(object));
    await nextSecond();
    await change();
    const stored = await this.cluster.settled(object, (newest) => {
      const { status, reason } = find(newest);
      expect(`${status}/${reason}`).toBe(expected);
    });
    const moved = (find(stored).lastTransitionTime ?? "") > (before.lastTransitionTime ?? "");
    expect(moved, `lastTransitionTime after ${before.status} → ${expected}`).toBe(
      find(stored).status !== before.status,
    );
  }
}
