/**
 * Which Events a status write is worth: transitions only, told by comparing the conditions before
 * with those after. So a new leader, which finds the statuses as they should be, announces nothing.
 * A tenant's Event repeats what its own status says, and that names nothing of others. Who holds
 * what was wanted is told to the Gateway's owner, in the Gateway's namespace.
 */
import { type Key, partsOf } from "../../api/key.ts";
import type { Condition } from "../../api/metadata.ts";
import type { ListenerVerdict, OwnerVerdict } from "../../engine/verdicts/verdicts.ts";
import type { LiveObject } from "../kubernetes/live-object.ts";
import { listOf, type Status } from "../kubernetes/merge-status.ts";
import type { StatusWrite, StatusWriterOptions } from "../kubernetes/writer-options.ts";
import type { EventContent, EventObject, EventRecorder } from "./events.ts";

interface Announcement {
  readonly regarding: EventObject;
  readonly content: EventContent;
}

/** Finds an object as the writer last knew it. */
type Find = (key: Key) => LiveObject | undefined;

/** The hooks of a status writer that tell its writes to a recorder. */
export function announcer(
  recorder: EventRecorder,
  find: Find,
): Required<Pick<StatusWriterOptions, "onWrite" | "onContested">> {
  const tell = ({ regarding, content }: Announcement): void => recorder.record(regarding, content);
  return {
    onWrite: (write) => {
      for (const announcement of announcementsOf(write, find)) tell(announcement);
    },
    onContested: ({ key, live, times }) => {
      const announcement = announcementOfContest(key, live, times);
      if (announcement !== undefined) tell(announcement);
    },
  };
}

/** What to tell about one write. */
export function announcementsOf(write: StatusWrite, find: Find): readonly Announcement[] {
  const { key, verdict, before, after } = write;
  if (verdict === undefined) return [];
  const regarding = eventObject(key, after);
  switch (verdict.type) {
    case "class":
    case "gateway":
    case "set": {
      const own = conditionNews(conditionsIn(before.status), conditionsIn(after.status), "");
      const listeners = verdict.type === "class" ? [] : listenerNews(verdict, write, find);
      return [...own.map((content) => ({ regarding, content })), ...listeners];
    }
    case "route":
    case "policy":
      return entryNews(verdict.type === "route" ? "parents" : "ancestors", before.status, after.status).map(
        (content) => ({ regarding, content }),
      );
    default:
      throw new Error(`no announcement for ${verdict satisfies never}`);
  }
}

/**
 * Somebody keeps changing a status of ours. The first times may be a restore or a clumsy script.
 */
function announcementOfContest(key: Key, live: LiveObject, times: number): Announcement | undefined {
  if (times < 3) return undefined;
  const note =
    "another program keeps changing the part of the status that Mergeway writes; it is written again ever more rarely";
  const content = { type: "Warning", reason: "StatusContested", action: "WriteStatus", note } as const;
  return { regarding: eventObject(key, live), content };
}

interface ListenerStatusEntry {
  readonly name: string;
  readonly conditions?: readonly Condition[];
}

function listenerNews(verdict: OwnerVerdict, write: StatusWrite, find: Find): readonly Announcement[] {
  const { key, before, after } = write;
  const regarding = eventObject(key, after);
  const earlier = listOf<ListenerStatusEntry>(before.status?.["listeners"]);
  return listOf<ListenerStatusEntry>(after.status?.["listeners"]).flatMap(({ name, conditions = [] }) => {
    const previous = earlier.find((listener) => listener.name === name)?.conditions ?? [];
    const news = conditionNews(previous, conditions, `listener ${name}: `);
    const listener = verdict.listeners.find((each) => each.name === name);
    const forOwner = conflictForOwner(key, verdict, listener, { previous, conditions, find });
    return [...news.map((content) => ({ regarding, content })), ...forOwner];
  });
}

interface ConflictNews {
  readonly previous: readonly Condition[];
  readonly conditions: readonly Condition[];
  readonly find: Find;
}

/** A conflict begins or ends: the Gateway's owner learns between whom. */
function conflictForOwner(
  key: Key,
  { gateway }: OwnerVerdict,
  listener: ListenerVerdict | undefined,
  { previous, conditions, find }: ConflictNews,
): readonly Announcement[] {
  const was = statusOf(previous, "Conflicted") === "True";
  const is = statusOf(conditions, "Conflicted") === "True";
  const gatewayObject = gateway === "" ? undefined : find(gateway);
  if (was === is || gatewayObject === undefined || listener === undefined) return [];
  // For a conflict within the Gateway, the Events of the Gateway itself are enough.
  if (key === gateway && listener.heldBy === undefined) return [];
  const here = partyName(`${key}#${listener.name}`);
  const regarding = eventObject(gateway, gatewayObject);
  const setObject = find(key);
  const related = setObject === undefined ? {} : { related: eventObject(key, setObject) };
  if (!is) {
    const note = `${here} is in conflict no longer`;
    return [
      {
        regarding,
        content: { type: "Normal", reason: "ConflictResolved", action: "Merge", note, ...related },
      },
    ];
  }
  const reason = conditions.find(({ type }) => type === "Conflicted")?.reason ?? "Conflicted";
  const note =
    listener.heldBy === undefined
      ? `${here} conflicts with another listener of the same object`
      : `${here} wants what ${partyName(listener.heldBy)} holds`;
  return [{ regarding, content: { type: "Warning", reason, action: "Merge", note, ...related } }];
}

/** `ListenerSet/team-a/web#https` → `listener https of ListenerSet team-a/web`. */
function partyName(listener: string): string {
  const at = listener.lastIndexOf("#");
  const { kind, namespace, name } = partsOf(listener.slice(0, at));
  return `listener ${listener.slice(at + 1)} of ${kind} ${namespace}/${name}`;
}

function entryNews(field: string, before: Status | undefined, after: Status | undefined): EventContent[] {
  const reference = field === "parents" ? "parentRef" : "ancestorRef";
  const earlier = listOf<Readonly<Record<string, unknown>>>(before?.[field]);
  return listOf<Readonly<Record<string, unknown>>>(after?.[field]).flatMap((entry) => {
    const id = idOf(entry, reference);
    const previous = earlier.find((each) => idOf(each, reference) === id);
    return conditionNews(conditionsIn(previous), conditionsIn(entry), `${nameOf(entry[reference])}: `);
  });
}

function idOf(entry: Readonly<Record<string, unknown>>, reference: string): string {
  const ref = entry[reference] as Readonly<Record<string, unknown>> | undefined;
  return JSON.stringify([entry["controllerName"], Object.entries(ref ?? {}).sort()]);
}

function nameOf(reference: unknown): string {
  const { kind, name, sectionName } = reference as { kind?: string; name?: string; sectionName?: string };
  return `${kind ?? "Gateway"} ${name ?? ""}${sectionName === undefined ? "" : `/${sectionName}`}`;
}

/** How to tell that a condition is bad, and that it is good again. A pending one is neither. */
interface Topic {
  readonly type: string;
  readonly bad: "True" | "False";
  readonly recovered: string;
  readonly action: string;
}

/** From the one that tells most about a cause to the one that tells least. */
const TOPICS: readonly Topic[] = [
  { type: "Conflicted", bad: "True", recovered: "ConflictResolved", action: "Merge" },
  { type: "ResolvedRefs", bad: "False", recovered: "ResolvedRefs", action: "Resolve" },
  { type: "Accepted", bad: "False", recovered: "Accepted", action: "Accept" },
  { type: "Programmed", bad: "False", recovered: "Programmed", action: "Program" },
];

/**
 * A cause often makes several conditions false at once, and says the same in each: it is told once
 * when it begins and once when it ends.
 */
function conditionNews(
  before: readonly Condition[],
  after: readonly Condition[],
  prefix: string,
): EventContent[] {
  const isConflicted = statusOf(after, "Conflicted") === "True";
  const wasConflicted = statusOf(before, "Conflicted") === "True";
  const begun = new Set<string>();
  const ended = new Set<string>();
  return TOPICS.flatMap(({ type, bad, recovered, action }): EventContent[] => {
    // A conflict makes the other conditions false too; one Event says it.
    if (isConflicted && type !== "Conflicted") return [];
    const condition = after.find((each) => each.type === type);
    const previous = before.find((each) => each.type === type);
    if (condition === undefined) return [];
    const note = `${prefix}${condition.message}`;
    const was = previous?.status === bad && previous.reason !== "Pending";
    const is = condition.status === bad && condition.reason !== "Pending";
    if (is) {
      const isTold = begun.has(condition.message) || (was && previous?.reason === condition.reason);
      begun.add(condition.message);
      return isTold ? [] : [{ type: "Warning", reason: condition.reason, action, note }];
    }
    // Neither is the end of a conflict told once for each of them.
    if (wasConflicted && type !== "Conflicted") return [];
    if (!was || condition.reason === "Pending" || ended.has(previous.message)) return [];
    ended.add(previous.message);
    return [{ type: "Normal", reason: recovered, action, note }];
  });
}

function statusOf(conditions: readonly Condition[], type: string): string | undefined {
  return conditions.find((condition) => condition.type === type)?.status;
}

function conditionsIn(holder: Readonly<Record<string, unknown>> | undefined): readonly Condition[] {
  return listOf<Condition>(holder?.["conditions"]);
}

function eventObject(key: Key, { apiVersion, metadata }: LiveObject): EventObject {
  const { kind, namespace, name } = partsOf(key);
  return { apiVersion, kind, namespace, name, uid: metadata.uid };
}
