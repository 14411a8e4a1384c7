import type { Condition } from "../../api/metadata.ts";
import { listOf, type Status } from "./merge-status.ts";

/**
 * Whether a status would unsay, only because it is not known yet, what an earlier leader has said: that something is programmed, or has addresses.
 * A controller that has just begun has not heard of its data planes, which go on serving all the while.
 */
export function unsaysForNow(before: Status | undefined, after: Status): boolean {
  if (listOf(before?.["addresses"]).length > 0 && isEmpty(after["addresses"])) return true;
  if (turnsPending(before, after)) return true;
  const earlier = listOf<Named>(before?.["listeners"]);
  return listOf<Named>(after["listeners"]).some((listener) =>
    turnsPending(
      earlier.find(({ name }) => name === listener.name),
      listener,
    ),
  );
}

interface Named {
  readonly name: string;
  readonly conditions?: readonly Condition[];
}

function isEmpty(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

function turnsPending(before: object | undefined, after: object): boolean {
  const is = programmedIn(after);
  return is?.status === "False" && is.reason === "Pending" && programmedIn(before)?.status === "True";
}

function programmedIn(holder: object | undefined): Condition | undefined {
  const { conditions } = (holder ?? {}) as { readonly conditions?: unknown };
  return listOf<Condition>(conditions).find(({ type }) => type === "Programmed");
}
