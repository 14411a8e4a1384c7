/**
 * What would change if an object were deleted, a listener taken out of its owner, or given another
 * hostname or port: computed by the engine, before anybody does it.
 */
import { type Key, kindOf } from "../../api/key.ts";
import type { Kind, Resource } from "../../api/resource.ts";
import type { Engine } from "../../engine/engine.ts";
import { listenerKey } from "../../engine/listeners/listeners.ts";
import type { ObjectVerdict } from "../../engine/verdicts/verdicts.ts";
import { stateOf } from "../build-listener.ts";
import { type ListenerState, listenerRefOf, refOf } from "../merged-state.ts";
import type { BlastQuestion, BlastRadius, HostnameMove, ListenerMove, RouteMove } from "./blast-answer.ts";
import { editListener } from "./edit-listener.ts";

/** Kinds whose change costs what hangs on them, and not what a Gateway has. */
const TRIED: readonly Kind[] = [
  "Gateway",
  "ListenerSet",
  "XListenerSet",
  "HTTPRoute",
  "GRPCRoute",
  "TLSRoute",
  "TCPRoute",
  "UDPRoute",
  "Service",
  "Secret",
  "ReferenceGrant",
];
const LONGEST_LIST = 500;
/** Owners that one question may concern. */
const MOST_OWNERS = 500;

export interface BlastSources {
  readonly engine: Engine;
  readonly resources: ReadonlyMap<Key, Resource>;
}

/** A text: why it cannot be asked. */
export function blastRadius(sources: BlastSources, question: BlastQuestion): BlastRadius | string {
  const { engine, resources } = sources;
  const [key = "", section] = question.of.split("#", 2);
  const resource = resources.get(key);
  if (resource === undefined) return `there is no ${key}`;
  if (!TRIED.includes(kindOf(key))) return `a ${resource.kind} may reach everything of a Gateway`;
  if (section === undefined && countOwners(engine, resources, key) > MOST_OWNERS)
    return `more than ${MOST_OWNERS} owners belong to it: all of them would lose it`;
  const edited = section === undefined ? undefined : editListener(resource, section, question);
  if (typeof edited === "string") return edited;
  const tried = engine.tryOut([{ key, resource: edited }], resources).verdicts;
  // A listener that serves another name is judged the same, and so is not among what changed.
  const verdicts = tried.has(key) ? tried : new Map(tried).set(key, engine.verdict(key));
  const moves = movesIn(verdicts, sources, new Map([[key, edited]]));
  const hostnames = hostnameMoves(moves);
  const listeners = moves.filter(({ before, after }) => before?.state !== after?.state).map(shownMove);
  const routes = [...verdicts].flatMap(([object, after]) => routeMove(object, engine.verdict(object), after));
  return {
    hostnames: hostnames.slice(0, LONGEST_LIST),
    listeners: listeners.slice(0, LONGEST_LIST),
    routes: routes.slice(0, LONGEST_LIST),
    totals: { hostnames: hostnames.length, listeners: listeners.length, routes: routes.length },
  };
}

/** Those that hang on a Gateway; other objects have few. */
function countOwners(engine: Engine, resources: ReadonlyMap<Key, Resource>, key: Key): number {
  if (kindOf(key) !== "Gateway") return 0;
  let count = 0;
  for (const each of resources.keys()) if (engine.attachment(each)?.owner.gateway === key) count++;
  return count;
}

interface Shown {
  readonly port: number;
  readonly hostname: string;
  readonly state: ListenerState;
  readonly heldBy?: string;
  readonly reason?: string;
  readonly message?: string;
}

interface Move {
  readonly listener: string;
  readonly before?: Shown;
  readonly after?: Shown;
}

function movesIn(
  after: ReadonlyMap<Key, ObjectVerdict | undefined>,
  { engine, resources }: BlastSources,
  edited: ReadonlyMap<Key, Resource | undefined>,
): readonly Move[] {
  return [...after].flatMap(([owner, verdict]) => {
    const old = resources.get(owner);
    const was = listenersOf(owner, engine.verdict(owner), old);
    const will = listenersOf(owner, verdict, edited.has(owner) ? edited.get(owner) : old);
    return Array.from(new Set([...was.keys(), ...will.keys()]), (listener): Move => {
      const [before, now] = [was.get(listener), will.get(listener)];
      return {
        listener,
        ...(before === undefined ? {} : { before }),
        ...(now === undefined ? {} : { after: now }),
      };
    });
  });
}

function listenersOf(
  owner: Key,
  verdict: ObjectVerdict | undefined,
  resource: Resource | undefined,
): ReadonlyMap<string, Shown> {
  const listeners = verdict?.type === "gateway" || verdict?.type === "set" ? verdict.listeners : [];
  const isOwner =
    resource?.kind === "Gateway" || resource?.kind === "ListenerSet" || resource?.kind === "XListenerSet";
  const specs = isOwner ? (resource.spec.listeners ?? []) : [];
  return new Map(
    listeners.map(({ name, port, conditions, heldBy }): [string, Shown] => {
      const hostname = specs.find((spec) => spec.name === name)?.hostname ?? "";
      const held = heldBy === undefined ? {} : { heldBy };
      return [listenerKey(owner, name), { port, hostname, ...stateOf(conditions), ...held }];
    }),
  );
}

/** Refused and conflicted listeners hold nothing. */
function holds(shown: Shown | undefined): shown is Shown {
  return shown !== undefined && shown.state !== "conflicted" && shown.state !== "refused";
}

function holdsTheSame({ before, after }: Move): boolean {
  return holds(before) && holds(after) && before.port === after.port && before.hostname === after.hostname;
}

/** Heirs were refused because of the holder; whoever is displaced would be because of them. */
function hostnameMoves(moves: readonly Move[]): readonly HostnameMove[] {
  const moved = moves.filter((move) => !holdsTheSame(move));
  const winners = moved.filter(({ after }) => holds(after));
  const heirs = new Map(
    winners.flatMap(({ listener, before }) =>
      before?.heldBy === undefined ? [] : [[before.heldBy, listener] as const],
    ),
  );
  const lost = moved.flatMap(({ listener, before, after }): HostnameMove[] => {
    if (!holds(before)) return [];
    const heir = heirs.get(listener) ?? after?.heldBy;
    const { port, hostname } = before;
    const place = { port, hostname, before: listenerRefOf(listener) };
    return [heir === undefined ? place : { ...place, after: listenerRefOf(heir) }];
  });
  const taken = new Set(
    lost.map(({ port, hostname, after }) => after && JSON.stringify([port, hostname, after])),
  );
  const gained = winners.flatMap(({ listener, after }): HostnameMove[] => {
    const move = { port: after?.port ?? 0, hostname: after?.hostname ?? "", after: listenerRefOf(listener) };
    return taken.has(JSON.stringify([move.port, move.hostname, move.after])) ? [] : [move];
  });
  return [...lost, ...gained].sort(
    (a, b) => a.port - b.port || (a.hostname < b.hostname ? -1 : a.hostname > b.hostname ? 1 : 0),
  );
}

function shownMove({ listener, before, after }: Move): ListenerMove {
  const { reason, message } = after ?? {};
  return {
    listener: listenerRefOf(listener),
    ...(before === undefined ? {} : { before: before.state }),
    ...(after === undefined ? {} : { after: after.state }),
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message }),
  };
}

function routeMove(
  route: Key,
  before: ObjectVerdict | undefined,
  after: ObjectVerdict | undefined,
): readonly RouteMove[] {
  if (before?.type !== "route" && after?.type !== "route") return [];
  const [was, will] = [conditionsOf(before), conditionsOf(after)];
  const known = new Set(was.problems.map(({ message }) => message));
  const problems = will.problems.filter(({ message }) => !known.has(message));
  if (was.accepted === will.accepted && problems.length === 0) return [];
  return [{ route: refOf(route), before: was.accepted, after: will.accepted, problems }];
}

function conditionsOf(verdict: ObjectVerdict | undefined): {
  readonly accepted: number;
  readonly problems: RouteMove["problems"];
} {
  const parents = verdict?.type === "route" ? verdict.parents : [];
  const all = parents.flatMap(({ conditions }) => conditions);
  return {
    accepted: all.filter(({ type, status }) => type === "Accepted" && status === "True").length,
    problems: all
      .filter(({ type, status }) => (type === "PartiallyInvalid" ? status === "True" : status === "False"))
      .map(({ reason, message }) => ({ reason, message })),
  };
}
