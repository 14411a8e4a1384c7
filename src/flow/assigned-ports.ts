/**
 * The memory of the ports that were assigned to XListenerSets. A cluster has it in their statuses.
 * Files have none, so it is kept here: once shown, a port stays, whoever else comes later.
 */
import type { Key } from "../api/key.ts";
import type { Resource } from "../api/resource.ts";
import type { EngineDelta } from "../engine/engine.ts";
import type { ObjectVerdict } from "../engine/verdicts/verdicts.ts";
import type { ResourceChange } from "../sources/source.ts";

export class AssignedPorts {
  readonly #earlier: (key: Key) => unknown;

  /** `earlier` is the status that an object had when the process last ran, if anybody kept it. */
  constructor(earlier: (key: Key) => unknown) {
    this.#earlier = earlier;
  }

  /** A resource that comes without its ports gets those that it has had. */
  complete({ key, resource }: ResourceChange, verdict: ObjectVerdict | undefined): ResourceChange {
    if (resource?.kind !== "XListenerSet" || resource.status?.listeners !== undefined)
      return { key, resource };
    const status = (portsOf(verdict) ?? this.#earlier(key)) as typeof resource.status;
    return { key, resource: status === undefined ? resource : { ...resource, status } };
  }

  /** The resources to which these verdicts assign ports, with them. */
  remembered(
    verdicts: EngineDelta["verdicts"],
    resources: ReadonlyMap<Key, Resource>,
  ): readonly ResourceChange[] {
    const changes: ResourceChange[] = [];
    for (const [key, verdict] of verdicts) {
      const resource = resources.get(key);
      const status = resource?.kind === "XListenerSet" ? portsOf(verdict) : undefined;
      if (resource !== undefined && status !== undefined)
        changes.push({ key, resource: { ...resource, status } as unknown as Resource });
    }
    return changes;
  }
}

function portsOf(verdict: ObjectVerdict | undefined): { readonly listeners: readonly unknown[] } | undefined {
  if (verdict?.type !== "set") return undefined;
  const shown = verdict.listeners.filter(({ port }) => port > 0);
  if (shown.length === 0) return undefined;
  return {
    listeners: shown.map(({ name, port }) => ({
      name,
      port,
      supportedKinds: [],
      attachedRoutes: 0,
      conditions: [],
    })),
  };
}
