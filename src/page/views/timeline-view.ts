/** Changes as they arrive, newest first. */
import { type Child, element, link } from "../dom/element.ts";
import { type ChangeRow, findChanges, KEPT_CHANGES } from "../model/changes.ts";
import { treeFragment } from "../model/place.ts";
import { Table } from "./table.ts";
import type { View, ViewContext } from "./view.ts";

export class TimelineView implements View {
  readonly title = "Timeline";
  readonly element: HTMLElement;
  readonly #table = new Table<ChangeRow>({
    label: `The last ${KEPT_CHANGES.toLocaleString("en")} changes`,
    columns: ["Time", "What", "What happened"],
    guess: 44,
    className: "timeline",
    keyOf: ({ id }) => String(id),
    signatureOf: () => "",
    cellsOf,
  });

  constructor() {
    this.element = element(
      "section",
      { class: "view", "aria-label": "Timeline" },
      element("h1", { class: "hidden" }, this.title),
      this.#table.element,
    );
  }

  show({ live, search }: ViewContext): void {
    const rows = findChanges(live.changes, search);
    this.#table.setRows(rows, search === "" ? "Nothing has changed yet." : `No change has “${search}”.`);
  }
}

function cellsOf({ at, tone, mark, what, text, node }: ChangeRow): readonly (readonly Child[])[] {
  const time = new Date(at);
  return [
    [element("time", { datetime: at, title: time.toLocaleString() }, time.toLocaleTimeString())],
    [
      element("span", { class: `mark ${tone}`, "aria-hidden": "true" }, mark),
      node === undefined
        ? element("span", { class: "title" }, what)
        : link(treeFragment(node), what, "title link"),
    ],
    [element("span", { class: tone === "bad" ? "note bad" : "" }, text)],
  ];
}
