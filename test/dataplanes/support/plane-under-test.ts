/**
 * A data plane with real ports, fed with a plan, and everything around it that a test has to close
 * again.
 */

import type { CloseOptions, DataPlane } from "../../../src/dataplanes/dataplane.ts";
import type { EmbeddedOptions } from "../../../src/dataplanes/embedded/limits/options.ts";
import type { RequestRecord } from "../../../src/dataplanes/request-record.ts";
import type { ItemReport } from "../../../src/plan/item-report.ts";
import type { PlanDelta, PlanItem } from "../../../src/plan/plan.ts";
import { lastingPort } from "./lasting-port.ts";

export type CreateDataPlane = (options: PlaneOptions) => TestedDataPlane;

/** `settle`: returns when everything that was applied is served. */
export type TestedDataPlane = DataPlane & { readonly settle?: () => Promise<void> };

export type PlaneOptions = Pick<
  EmbeddedOptions,
  "bind" | "limits" | "trustedHops" | "onRequestEnd" | "onlySampled" | "tracing" | "signal" | "traffic"
>;

export class PlaneUnderTest {
  readonly plane: TestedDataPlane;
  readonly records: RequestRecord[] = [];
  readonly #ports: ReadonlyMap<number, number>;
  readonly #reports: Map<string, ItemReport> = new Map();
  readonly #known: Map<string, PlanItem> = new Map();
  #onChange: (() => void) | undefined;

  private constructor(
    create: CreateDataPlane,
    ports: ReadonlyMap<number, number>,
    options: Partial<PlaneOptions>,
  ) {
    this.#ports = ports;
    this.plane = create({
      bind: { address: "127.0.0.1", portMap: (port) => this.at(port) },
      onRequestEnd: (record) => this.records.push(record),
      ...options,
    });
    this.plane.onReport((reports) => {
      for (const report of reports) this.#reports.set(report.id, report);
      this.#onChange?.();
    });
  }

  /**
   * Every port of the plan gets a free one of this machine, and the plan is programmed when this
   * returns.
   */
  static async start(
    create: CreateDataPlane,
    items: readonly PlanItem[],
    options: Partial<PlaneOptions> = {},
  ): Promise<PlaneUnderTest> {
    const ports = new Map<number, number>();
    for (const item of items) if (item.type === "port") ports.set(item.port, await lastingPort());
    const plane = new PlaneUnderTest(create, ports, options);
    await plane.apply({ upserts: items, removes: [] });
    return plane;
  }

  /** Where a port of the plan is really open. */
  at(port: number): number {
    return this.#ports.get(port) ?? port;
  }

  /** Returns when there is a report on every port, listener and certificate of the delta. */
  async apply(delta: PlanDelta): Promise<void> {
    for (const id of delta.removes) this.#reports.delete(id);
    for (const item of delta.upserts) if (this.#known.get(item.id) !== item) this.#reports.delete(item.id);
    const awaited = delta.upserts.filter(
      (item) => item.type === "port" || item.type === "listener" || item.type === "certificate",
    );
    for (const item of delta.upserts) this.#known.set(item.id, item);
    this.plane.apply(delta);
    await this.until(() => awaited.every((item) => this.#reports.has(item.id)));
    // What no report tells of (rules, backends) takes a moment where the data plane is another
    // process.
    await this.plane.settle?.();
  }

  report(id: string): ItemReport | undefined {
    return this.#reports.get(id);
  }

  /** Waits for reports; the test's own time limit is the bound. */
  async until(satisfied: () => boolean): Promise<void> {
    while (!satisfied()) {
      await new Promise<void>((resolve) => {
        this.#onChange = resolve;
      });
    }
  }

  /** Records come after the answer: waits for the first that fits. */
  async record(fits: (record: RequestRecord) => boolean): Promise<RequestRecord> {
    for (;;) {
      const found = this.records.find(fits);
      if (found !== undefined) return found;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  close(options: CloseOptions = { graceMs: 0 }): Promise<void> {
    return this.plane.close(options);
  }
}
