/** Small worlds for tests of the page. */

import { openManifests } from "../../src/cli/workspace/workspace.ts";
import { buildState } from "../../src/view/build-state.ts";
import type { MergedState } from "../../src/view/merged-state.ts";
import { type Outline, outlineOf } from "../../src/view/outline.ts";
import { folder, ROOT } from "../cli/mergeway.ts";

export async function stateOfFiles(files: Readonly<Record<string, string>>): Promise<MergedState> {
  return buildState(await openManifests([folder(files)]));
}

/** Two teams that are served, and a third that asks for a hostname that is taken. */
export async function twoTeams(): Promise<Outline> {
  return outlineOf(buildState(await openManifests([`${ROOT}/examples/two-teams`])));
}

/** Owners with listeners on port 80: by name, age and hostnames. */
export function setsManifest(
  sets: readonly {
    readonly name: string;
    readonly created?: string;
    readonly hostnames: readonly string[];
  }[],
  gatewayHostnames: readonly string[] = ["platform.example.com"],
): string {
  const listeners = (hostnames: readonly string[]): unknown =>
    hostnames.map((hostname, index) => ({
      name: `l${index}`,
      port: 80,
      protocol: "HTTP",
      ...(hostname === "" ? {} : { hostname }),
    }));
  const objects = [
    {
      apiVersion: "gateway.networking.k8s.io/v1",
      kind: "Gateway",
      metadata: { name: "shared", namespace: "infra" },
      spec: {
        gatewayClassName: "mergeway",
        allowedListeners: { namespaces: { from: "All" } },
        listeners: listeners(gatewayHostnames),
      },
    },
    ...sets.map(({ name, created, hostnames }) => ({
      apiVersion: "gateway.networking.k8s.io/v1",
      kind: "ListenerSet",
      metadata: {
        name,
        namespace: "infra",
        ...(created === undefined ? {} : { creationTimestamp: created }),
      },
      spec: { parentRef: { name: "shared" }, listeners: listeners(hostnames) },
    })),
  ];
  return objects.map((object) => JSON.stringify(object)).join("\n---\n");
}
