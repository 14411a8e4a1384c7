/**
 * What a cluster says of how its Gateways are programmed, where that is not what goes without
 * saying. It cannot be computed from manifests: only the controller hears of the data plane, and it
 * tells in the status.
 */
import type { Condition } from "../../api/metadata.ts";
import { PROGRAMMED } from "../../engine/verdicts/owner-verdicts.ts";
import { type GatewayView, nameOf } from "../../view/merged-state.ts";
import type { Workspace } from "../workspace/workspace.ts";

export interface ProgrammingNote {
  readonly isProgrammed: boolean;
  readonly text: string;
}

export type NoteOf = (gateway: GatewayView) => ProgrammingNote | undefined;

export function pendingProgramming({ isLive, resources }: Pick<Workspace, "isLive" | "resources">): NoteOf {
  if (!isLive) return () => undefined;
  return (gateway) => {
    const resource = resources.get(`Gateway/${nameOf(gateway)}`);
    const { conditions = [] } = ((resource as { readonly status?: unknown } | undefined)?.status ?? {}) as {
      readonly conditions?: readonly Condition[];
    };
    const held = conditions.find(({ type }) => type === "Programmed");
    const computed = gateway.conditions.find(({ type }) => type === "Programmed");
    // What is computed here is shown anyway, where it belongs.
    if (held === undefined || [PROGRAMMED, computed].some((each) => each?.message === held.message))
      return undefined;
    const isProgrammed = held.status === "True";
    return { isProgrammed, text: isProgrammed ? held.message : `${held.reason}: ${held.message}` };
  };
}

export function noteText({ isProgrammed, text }: ProgrammingNote): string {
  return isProgrammed ? text : `not programmed: ${text}`;
}
