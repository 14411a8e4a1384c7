import type { Listener } from "../../api/gateway.ts";
import type { Resource } from "../../api/resource.ts";
import { isPattern } from "../../plan/hostname.ts";
import type { ListenerEdit } from "./blast-answer.ts";

/** The owner with one listener changed, or a text: why that cannot be. */
export function editListener(
  owner: Resource,
  section: string,
  { hostname, port }: ListenerEdit,
): Resource | string {
  if (owner.kind !== "Gateway" && owner.kind !== "ListenerSet" && owner.kind !== "XListenerSet")
    return `a ${owner.kind} has no listeners`;
  const listeners = owner.spec.listeners ?? [];
  if (!listeners.some(({ name }) => name === section)) return `it has no listener ${section}`;
  if (hostname !== undefined && hostname !== "" && !isPattern(hostname)) return "that is no hostname";
  if (port !== undefined && !(Number.isInteger(port) && port >= 1 && port <= 65_535))
    return "that is no port";
  const isRemoval = hostname === undefined && port === undefined;
  const edited = listeners.flatMap((listener): readonly Listener[] => {
    if (listener.name !== section) return [listener];
    if (isRemoval) return [];
    const { hostname: _, ...rest } = listener;
    return [
      {
        ...(hostname === undefined ? listener : hostname === "" ? rest : { ...rest, hostname }),
        ...(port === undefined ? {} : { port }),
      },
    ];
  });
  return { ...owner, spec: { ...owner.spec, listeners: edited } } as Resource;
}
