/**
 * The contract of data planes, where it does not speak of ports, schemes and TLS, over a tunnel
 * whose connector is always there.
 */

import { describe } from "vitest";
import type { CloseOptions, DataPlane } from "../../../src/dataplanes/dataplane.ts";
import { createEmbeddedDataPlane } from "../../../src/dataplanes/embedded/embedded-data-plane.ts";
import type { TunnelLink, TunnelState } from "../../../src/dataplanes/tunnel/cloudflare/tunnel-link.ts";
import { makeOriginCertificate } from "../../../src/dataplanes/tunnel/origin-certificate.ts";
import { TunnelDataPlane } from "../../../src/dataplanes/tunnel/tunnel-data-plane.ts";
import type { ItemReport } from "../../../src/plan/item-report.ts";
import type { PlanDelta, PlanItem } from "../../../src/plan/plan.ts";
import { describeFilters } from "../contract/filters.ts";
import { describeMessages } from "../contract/messages.ts";
import { describeStrictness } from "../contract/strictness.ts";
import { allTraits } from "../contract/traits.ts";
import { gateway } from "../support/plan-builder.ts";
import type { PlaneOptions } from "../support/plane-under-test.ts";

const certificate = await makeOriginCertificate("127.0.0.1", new Date());
const GATEWAY: PlanItem = { type: "gateway", id: "gateway", gateway };

class ConnectedLink implements TunnelLink {
  #handler: ((gateway: string, state: TunnelState) => void) | undefined;
  lead(name: string): void {
    this.#handler?.(name, { address: "tunnel.example", connections: 1 });
  }
  release(): void {}
  onState(handler: (gateway: string, state: TunnelState) => void): void {
    this.#handler = handler;
  }
  async close(): Promise<void> {}
}

/**
 * The contract's plans name their ports and no Gateway: the first port they name is where the
 * tunnel's origin is.
 */
class TunnelUnderContract implements DataPlane {
  readonly features: ReadonlySet<string> = new Set();
  readonly #options: PlaneOptions;
  #plane: TunnelDataPlane | undefined;
  #handler: (reports: readonly ItemReport[]) => void = () => {};

  constructor(options: PlaneOptions) {
    this.#options = options;
  }

  apply(delta: PlanDelta): void {
    if (this.#plane === undefined) {
      const first = delta.upserts.find((item) => item.type === "port")?.port ?? 80;
      const { bind, ...rest } = this.#options;
      this.#plane = new TunnelDataPlane({
        inner: createEmbeddedDataPlane({ ...rest, bind: { address: bind.address } }),
        link: new ConnectedLink(),
        address: bind.address,
        firstPort: bind.portMap?.(first) ?? first,
        certificate,
      });
      this.#plane.onReport((reports) => this.#handler(reports));
      this.#plane.apply({ upserts: [GATEWAY], removes: [] });
    }
    this.#plane.apply(delta);
  }

  onReport(handler: (reports: readonly ItemReport[]) => void): void {
    this.#handler = handler;
  }

  async close(options?: CloseOptions): Promise<void> {
    await this.#plane?.close(options);
  }
}

describe("tunnel", () => {
  const create = (options: PlaneOptions): DataPlane => new TunnelUnderContract(options);
  describe("messages", () => describeMessages(create, allTraits));
  describe("filters", () => describeFilters(create));
  describe("strictness", () => describeStrictness(create));
});
