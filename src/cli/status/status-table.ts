/** The merged state with one line per listener. */
import type { ListenerView, MergedState, OwnerView } from "../../view/merged-state.ts";
import { nameOf } from "../../view/merged-state.ts";
import { linesOf, type Terminal } from "../foundation/terminal.ts";
import { columns } from "../foundation/text-table.ts";
import { type NoteOf, noteText } from "./pending-programming.ts";
import { stateWord } from "./state-word.ts";

const HEAD = [
  "GATEWAY",
  "#",
  "OWNER",
  "LISTENER",
  "PORT",
  "PROTOCOL",
  "HOSTNAME",
  "CERTIFICATE",
  "ROUTES",
  "STATE",
  "HELD BY",
];

export interface StatusTableOptions {
  readonly limit?: number;
  readonly noteOf?: NoteOf;
}

export function statusTable(
  state: MergedState,
  terminal: Terminal,
  { limit, noteOf = () => undefined }: StatusTableOptions = {},
): string {
  const rows = [
    ...state.gateways.flatMap((gateway) =>
      gateway.owners.flatMap((owner) => ownerRows(nameOf(gateway), owner, terminal)),
    ),
    ...state.orphans.flatMap((owner) => ownerRows("-", owner, terminal)),
  ];
  if (rows.length === 0) return "There is no listener here.\n";
  const shown = limit === undefined ? rows : rows.slice(0, limit);
  const head = HEAD.map((title) => terminal.style("bold", title));
  const used = shown.some((row) => row.at(-1) !== "") ? HEAD.length : HEAD.length - 1;
  const lines = columns([head, ...shown].map((row) => row.slice(0, used)));
  const left = rows.length - shown.length;
  const notes = state.gateways.flatMap((gateway) => {
    const note = noteOf(gateway);
    if (note === undefined) return [];
    const text = `Gateway ${nameOf(gateway)}: ${noteText(note)}`;
    return [terminal.style(note.isProgrammed ? "yellow" : "red", text)];
  });
  return linesOf([...lines, ...(left > 0 ? [`… and ${left} more`] : []), ...notes]);
}

function ownerRows(gateway: string, owner: OwnerView, terminal: Terminal): string[][] {
  const known = owner.listeners.filter(({ isUnread }) => isUnread !== true);
  return known.map((listener) => [
    gateway,
    owner.precedence === 0 ? "-" : String(owner.precedence),
    `${owner.kind} ${nameOf(owner)}`,
    listener.section,
    String(listener.port),
    listener.protocol,
    listener.hostname === "" ? "*" : listener.hostname,
    listener.certificates.map(({ secret }) => secret).join(",") || "-",
    String(listener.attachedRoutes),
    stateWord(listener, terminal),
    holder(listener),
  ]);
}

function holder({ heldBy }: ListenerView): string {
  return heldBy === undefined ? "" : `${heldBy.kind} ${nameOf(heldBy)} (${heldBy.section})`;
}
