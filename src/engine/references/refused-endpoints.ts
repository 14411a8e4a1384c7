/**
 * Endpoints that no data plane may be sent to. Whoever may write EndpointSlices could otherwise
 * reach, through the Gateway, what only the data plane itself can reach (CVE-2021-25740). A Service
 * with such an endpoint is refused as a whole: it is not what it seems.
 */
import type { EndpointSlice } from "../../api/core.ts";
import { keyFor } from "../../api/key.ts";
import type { ReadonlyCollection } from "../../graph/collection.ts";
import type { Graph } from "../../graph/graph.ts";
import type { Index } from "../../graph/index-collection.ts";
import type { Inputs } from "../foundation/inputs.ts";
import type { EngineSettings } from "../foundation/settings.ts";

export interface ServiceEndpoints {
  /** By the key of the Service. */
  readonly slices: Index<EndpointSlice>;
  /**
   * Services that are refused, each with the reason. Routes look only here, so no other change of
   * an endpoint recomputes them.
   */
  readonly refused: ReadonlyCollection<string>;
  /**
   * Also asked of every endpoint by itself: where a slice names no port, the Service's own one is
   * known only then.
   */
  readonly isRefused: (address: string, port: number) => boolean;
}

export function deriveServiceEndpoints(
  graph: Graph,
  inputs: Inputs,
  { refusedEndpoint }: EngineSettings,
): ServiceEndpoints {
  const slices = graph.index("slices by service", inputs.slices, (_key, { metadata }) => {
    const service = metadata.labels?.["kubernetes.io/service-name"];
    return service === undefined ? [] : [{ at: keyFor("Service", metadata.namespace ?? "", service) }];
  });
  const refused = graph.derive("refused endpoints", slices, (_service, entries): string | undefined => {
    if (refusedEndpoint === undefined) return undefined;
    for (const { value } of entries) {
      const found = refusalOf(value, refusedEndpoint);
      if (found !== undefined) return found;
    }
    return undefined;
  });
  return { slices, refused, isRefused: (address, port) => refusedEndpoint?.(address, port) !== undefined };
}

function refusalOf(
  slice: EndpointSlice,
  refusedEndpoint: NonNullable<EngineSettings["refusedEndpoint"]>,
): string | undefined {
  if (slice.addressType === "FQDN") return undefined;
  for (const { addresses } of slice.endpoints ?? []) {
    for (const address of addresses) {
      for (const { port } of slice.ports ?? [{}]) {
        const why = refusedEndpoint(address, port);
        if (why !== undefined) return `the endpoint ${address} ${why}`;
      }
    }
  }
  return undefined;
}
