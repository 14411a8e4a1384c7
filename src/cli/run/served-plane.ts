/** What `serve` serves with: a data plane, and how Gateways are reached through it. */
import type { Key } from "../../api/key.ts";
import type { DataPlane } from "../../dataplanes/dataplane.ts";
import { createEmbeddedDataPlane } from "../../dataplanes/embedded/embedded-data-plane.ts";
import type { RequestRecord } from "../../dataplanes/request-record.ts";
import type { SamplingSettings } from "../../dataplanes/telemetry/telemetry-settings.ts";
import type { TrafficCounts } from "../../dataplanes/traffic/traffic-counts.ts";
import type { InfrastructureFact } from "../../engine/foundation/inputs.ts";
import { reachableAddresses } from "./addresses.ts";
import type { Logger } from "./logger.ts";

export interface ServedPlane {
  readonly dataPlane: DataPlane;
  /** Where, in words, for the line at the start. */
  readonly place: string;
  infrastructureOf(gateway: Key): InfrastructureFact;
  /** Called when what is said of a Gateway has changed. */
  onInfrastructure?(handler: (gateway: Key) => void): void;
  /** The Gateway itself has gone, not only its plan. */
  removed?(gateway: Key): void;
}

export type MakePlane = (needs: {
  readonly workers: number | "auto";
  readonly logger: Logger;
  /** Where traffic is counted. */
  readonly traffic: TrafficCounts;
  /** Absent: nobody reads the records. */
  readonly onRequestEnd?: (record: RequestRecord) => void;
  readonly onlySampled?: boolean;
  readonly tracing?: SamplingSettings | undefined;
}) => Promise<ServedPlane>;

/** Every Gateway is reached at the addresses of this process. */
export function embeddedPlane(address: string, portOffset: number): MakePlane {
  return async ({ workers, logger: _logger, ...hooks }) => {
    const bind = { address, portMap: (port: number) => port + portOffset };
    const fact = { addresses: reachableAddresses(address) };
    return {
      dataPlane: createEmbeddedDataPlane({ bind, workers, ...hooks }),
      place: portOffset === 0 ? address : `${address}, each port ${portOffset} higher`,
      infrastructureOf: () => fact,
    };
  };
}
