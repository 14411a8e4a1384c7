/** Per port: who holds a hostname, who wanted it too, and the rule that decided. */
import type { Outline } from "../../view/outline.ts";
import type { ReadingScope } from "../../view/written/reading-scope.ts";
import { type Child, element, link, redraw } from "../dom/element.ts";
import { pill } from "../dom/pill.ts";
import {
  type Claim,
  findHostnames,
  type HostnameRow,
  type PortTable,
  portTables,
  ruleText,
} from "../model/hostnames.ts";
import { fragmentOf, textParameter, treeFragment } from "../model/place.ts";
import { counted, STATE_TONES } from "../model/row-text.ts";
import { isHeldByOthers } from "../model/scope-text.ts";
import { listenerNodeId } from "../model/tree.ts";
import { Table } from "./table.ts";
import type { View, ViewContext } from "./view.ts";

type Row = { readonly table: PortTable } | { readonly row: HostnameRow };

export class HostnamesView implements View {
  readonly title = "Hostnames";
  readonly element: HTMLElement;
  readonly #ports = element("div", { class: "chips", role: "group", "aria-label": "Ports" });
  readonly #table: Table<Row>;
  #scope: ReadingScope | undefined;
  #made: { readonly outline: Outline; readonly tables: readonly PortTable[] } | undefined;

  constructor() {
    this.#table = new Table<Row>({
      label: "Hostnames by port",
      columns: ["Hostname", "Holder", "Wanted too, and why not theirs", "Also matched by"],
      guess: 44,
      className: "hostnames",
      keyOf: (row) => ("table" in row ? row.table.id : row.row.id),
      signatureOf: (row) =>
        JSON.stringify("table" in row ? [row.table.rows.length, row.table.protocols] : shown(row.row)),
      cellsOf: (row) => ("table" in row ? [[...portHeading(row.table)]] : cells(row.row, this.#scope)),
    });
    this.element = element(
      "section",
      { class: "view", "aria-label": "Hostnames" },
      element("h1", { class: "hidden" }, this.title),
      this.#ports,
      this.#table.element,
    );
  }

  show({ world, place, search }: ViewContext): void {
    this.#scope = world.scope;
    if (this.#made?.outline !== world.outline)
      this.#made = { outline: world.outline, tables: portTables(world.outline) };
    const { tables } = this.#made;
    const port = textParameter(place, "port");
    const chip = (value: string, text: string): HTMLElement =>
      element(
        "a",
        {
          class: "chip",
          href: fragmentOf({ ...place, parameters: { ...place.parameters, port: value } }),
          "aria-current": value === port ? "true" : undefined,
        },
        text,
      );
    const ports = [...new Set(tables.map((table) => table.port))];
    redraw(this.#ports, JSON.stringify([place, ports]), () => [
      chip("", "All ports"),
      ...ports.map((each) => chip(String(each), String(each))),
    ]);
    const chosen = tables.filter((table) => port === "" || String(table.port) === port);
    const rows = findHostnames(chosen, search).flatMap((table): readonly Row[] => [
      { table },
      ...table.rows.map((row) => ({ row })),
    ]);
    this.#table.setRows(
      rows,
      search === "" ? "No listener wants a hostname yet." : `No hostname or owner has “${search}”.`,
    );
  }
}

function portHeading({ port, transport, protocols, gateway, rows }: PortTable): readonly Child[] {
  return [
    element("span", { class: "title" }, `Port ${port}`),
    element(
      "span",
      { class: "meta" },
      [
        protocols.join(", ") || transport.toUpperCase(),
        `Gateway ${gateway}`,
        counted(rows.length, "hostname"),
      ].join(" · "),
    ),
  ];
}

function cells(
  { hostname, holder, others, coveredBy }: HostnameRow,
  scope: ReadingScope | undefined,
): readonly (readonly Child[])[] {
  const isOthers = others.some(({ listener }) => isHeldByOthers(listener, scope));
  return [
    [element("span", { class: hostname === "" ? "title any" : "title" }, hostname || "any hostname")],
    holder === undefined
      ? [isOthers ? pill("warn", "another team") : pill("bad", "nobody")]
      : [
          claimLink(holder),
          holder.listener.state !== "serving" &&
            pill(STATE_TONES[holder.listener.state], holder.listener.state),
        ],
    others.map((claim) =>
      element(
        "div",
        { class: "claim" },
        pill(STATE_TONES[claim.listener.state], claim.listener.state),
        " ",
        claimLink(claim),
        element(
          "span",
          { class: "meta" },
          isHeldByOthers(claim.listener, scope) ? "held by another team" : ruleText(claim.listener),
        ),
      ),
    ),
    coveredBy.length === 0
      ? []
      : [
          element(
            "span",
            { class: "meta" },
            coveredBy.map((pattern) => pattern || "any hostname").join(", "),
          ),
        ],
  ];
}

function claimLink({ owner, listener }: Claim): HTMLElement {
  const id = listenerNodeId({ ...owner, section: listener.section });
  return element(
    "span",
    { class: "who" },
    owner.precedence > 0 &&
      element("span", { class: "rank", title: "Place in the order of precedence" }, String(owner.precedence)),
    link(treeFragment(id), `${owner.kind} ${owner.namespace}/${owner.name} · ${listener.section}`),
  );
}

function shown({ hostname, holder, others, coveredBy }: HostnameRow): unknown {
  const claim = ({ owner, listener }: Claim): unknown => [
    owner.precedence,
    owner.kind,
    owner.namespace,
    owner.name,
    listener.section,
    listener.state,
    listener.reason,
    listener.decidedBy,
  ];
  return [hostname, holder && claim(holder), others.map(claim), coveredBy];
}
