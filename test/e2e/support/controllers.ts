/**
 * Replicas of the controller in a served cluster: who feeds a pod, who leads, and how to hold one
 * up.
 */
import { expect } from "vitest";
import { ok } from "../../../tools/cluster/bed.ts";
import { containerPid } from "../../../tools/cluster/cluster.ts";
import { eventually, type ServedCluster, SYSTEM } from "./served-cluster.ts";

interface ControllerPod {
  readonly metadata: { readonly name: string };
  readonly status: {
    readonly containerStatuses: readonly { readonly name: string; readonly containerID: string }[];
  };
}

const METRICS_PORT = 9090;

export class Controllers {
  readonly #cluster: ServedCluster;

  constructor(cluster: ServedCluster) {
    this.#cluster = cluster;
  }

  async names(): Promise<readonly string[]> {
    return (await this.#pods()).map(({ metadata }) => metadata.name);
  }

  async leader(): Promise<string> {
    const holder = ["-n", SYSTEM, "get", "lease/mergeway", "-o", "jsonpath={.spec.holderIdentity}"];
    return ok(this.#cluster.bed.kubectl(holder));
  }

  /** From now on this one leads: the lease says so, and both of them read it. */
  async lead(name: string): Promise<void> {
    const patch = JSON.stringify({ spec: { holderIdentity: name } });
    await ok(
      this.#cluster.bed.kubectl(["-n", SYSTEM, "patch", "lease/mergeway", "--type=merge", "-p", patch]),
    );
    await eventually(async () => {
      expect(await this.#metrics(name)).toContain("\nmergeway_leader 1\n");
      for (const other of await this.names())
        if (other !== name) expect(await this.#metrics(other)).toContain("\nmergeway_leader 0\n");
    });
  }

  /** Which of them the only pod of a Gateway takes its plan from. */
  async feederOf(gateway: string): Promise<string> {
    return eventually(async () => {
      const feeders: string[] = [];
      for (const name of await this.names())
        if ((await this.#metrics(name)).includes(`mergeway_data_plane_unsent_items{gateway="${gateway}"`))
          feeders.push(name);
      expect(feeders).toHaveLength(1);
      return feeders[0] ?? "";
    });
  }

  /** Its event loop stands still for so long. */
  async holdUp(name: string, ms: number): Promise<void> {
    const pod = (await this.#pods()).find(({ metadata }) => metadata.name === name);
    const id = pod?.status.containerStatuses[0]?.containerID.replace(/^.*:\/\//, "") ?? "";
    const pid = String(await containerPid(this.#cluster.bed.cluster, id));
    await ok(this.#cluster.bed.run(["kill", "-STOP", pid]));
    await new Promise((resolve) => setTimeout(resolve, ms));
    await ok(this.#cluster.bed.run(["kill", "-CONT", pid]));
  }

  async #pods(): Promise<readonly ControllerPod[]> {
    const selector = "app.kubernetes.io/component=controller";
    const out = await ok(
      this.#cluster.bed.kubectl(["-n", SYSTEM, "get", "pods", "-l", selector, "-o", "json"]),
    );
    return (JSON.parse(out) as { readonly items: readonly ControllerPod[] }).items;
  }

  async #metrics(name: string): Promise<string> {
    const path = `/api/v1/namespaces/${SYSTEM}/pods/${name}:${METRICS_PORT}/proxy/metrics`;
    return `\n${await ok(this.#cluster.bed.kubectl(["get", "--raw", path]))}`;
  }
}
