import type { ConfirmedReplicas, ServedPod } from "../../../src/dataplanes/remote/publisher/confirmations.ts";
import {
  PlanPublisher,
  type PlanPublisherOptions,
} from "../../../src/dataplanes/remote/publisher/plan-publisher.ts";
import { PlanServer, type PlanServerOptions } from "../../../src/dataplanes/remote/publisher/plan-server.ts";
import type { ReplicaLag } from "../../../src/dataplanes/remote/publisher/replica.ts";
import type { ItemReport } from "../../../src/plan/item-report.ts";
import type { PlanDelta } from "../../../src/plan/plan.ts";

export type PublishingServerOptions = Omit<PlanServerOptions, "publisher"> & PlanPublisherOptions;

/**
 * A server of the plan stream with a publisher of its own: as much of a controller as a pod sees.
 */
export class PublishingServer extends PlanServer {
  readonly #publisher: PlanPublisher;

  constructor(options: PublishingServerOptions) {
    const publisher = new PlanPublisher(options);
    super({ ...options, publisher });
    this.#publisher = publisher;
  }

  get lags(): readonly ReplicaLag[] {
    return this.#publisher.lags;
  }

  get confirmed(): ReadonlyMap<string, ConfirmedReplicas> {
    return this.#publisher.confirmed;
  }

  apply(delta: PlanDelta): void {
    this.#publisher.apply(delta);
  }

  expect(gateway: string, pods: readonly ServedPod[] | undefined): void {
    this.#publisher.expect(gateway, pods);
  }

  onReport(handler: (reports: readonly ItemReport[]) => void): void {
    this.#publisher.onReport(handler);
  }

  override async close(): Promise<void> {
    await this.#publisher.close();
    await super.close();
  }
}
