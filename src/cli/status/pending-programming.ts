/**
 * The `Programmed` condition of a live Gateway that is not fully programmed: it failed, or replicas
 * lag. It cannot be computed from manifests: only the controller knows the data plane, and writes
 * what it knows into the status.
 */
import type { Condition } from "../../api/metadata.ts";
import { OWNER_PROGRAMMED } from "../../engine/verdicts/owner-verdicts.ts";
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
    const live = conditions.find(({ type }) => type === "Programmed");
    const computed = gateway.conditions.find(({ type }) => type === "Programmed");
    if (live === undefined || live.message === OWNER_PROGRAMMED.message) return undefined;
    const isProgrammed = live.status === "True";
    // What the Gateway itself says is shown elsewhere in the output, if it is not programmed.
    if (!isProgrammed && computed?.message === live.message) return undefined;
    return { isProgrammed, text: isProgrammed ? live.message : `${live.reason}: ${live.message}` };
  };
}

export function noteText({ isProgrammed, text }: ProgrammingNote): string {
  return isProgrammed ? text : `not programmed: ${text}`;
}
