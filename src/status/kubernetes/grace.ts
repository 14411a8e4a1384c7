import type { Condition } from "../../api/metadata.ts";
import { listOf, type Status } from "./merge-status.ts";

/** A status during the grace time, and whether it keeps something that it would take back. */
interface KeptStatus {
  readonly status: Status;
  readonly keeps: boolean;
}

/**
 * A rendered status that keeps `Programmed` and addresses of the old status, if they are only not
 * known yet. A controller that has just started has no reports of its data planes, which serve all
 * the while. Everything else is written.
 */
export function keepForNow(before: Status | undefined, rendered: Status): KeptStatus {
  const addresses = listOf(before?.["addresses"]);
  const keepsAddresses = addresses.length > 0 && isEmpty(rendered["addresses"]);
  const own = keepProgrammed(before, rendered);
  const earlier = listOf<Named>(before?.["listeners"]);
  const listeners = listOf<Named>(rendered["listeners"]).map((listener) =>
    keepProgrammed(
      earlier.find(({ name }) => name === listener.name),
      listener,
    ),
  );
  const keepsListeners = listeners.some(({ keeps }) => keeps);
  return {
    keeps: own.keeps || keepsAddresses || keepsListeners,
    status: {
      ...own.holder,
      ...(keepsAddresses ? { addresses } : {}),
      ...(keepsListeners ? { listeners: listeners.map(({ holder }) => holder) } : {}),
    },
  };
}

interface Named {
  readonly name: string;
}

function isEmpty(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

function keepProgrammed<T extends object>(
  before: object | undefined,
  after: T,
): { readonly holder: T; readonly keeps: boolean } {
  const is = programmedIn(after);
  const was = programmedIn(before);
  const keeps = is?.status === "False" && is.reason === "Pending" && was?.status === "True";
  if (!keeps) return { holder: after, keeps };
  const conditions = conditionsIn(after).map((condition) => (condition === is ? was : condition));
  return { holder: { ...after, conditions }, keeps };
}

function programmedIn(holder: object | undefined): Condition | undefined {
  return conditionsIn(holder).find(({ type }) => type === "Programmed");
}

function conditionsIn(holder: object | undefined): readonly Condition[] {
  return listOf<Condition>((holder as { readonly conditions?: unknown } | undefined)?.conditions);
}
