/** The tree of the merged Gateway, with the details of the chosen node beside it. */
import { element, link, redraw } from "../dom/element.ts";
import { pill } from "../dom/pill.ts";
import { WindowedList } from "../dom/windowed-list.ts";
import { textParameter, treeFragment } from "../model/place.ts";
import { rolloutOf } from "../model/rollout.ts";
import { rowText } from "../model/row-text.ts";
import type { TreeNode } from "../model/tree.ts";
import { hasChildren } from "../model/tree.ts";
import { pathTo, type TreeRow, treeRows } from "../model/tree-rows.ts";
import { detailsOf } from "./details.ts";
import { summaryStrip } from "./summary-strip.ts";
import { moveInTree } from "./tree-keys.ts";
import type { View, ViewContext } from "./view.ts";

const NO_RATES = new Map<never, never>();

export class TreeView implements View {
  readonly title = "Tree";
  readonly element: HTMLElement;
  readonly #summary = element("div", { class: "summary" });
  readonly #scroller = element("div", {
    class: "scroller tree",
    role: "tree",
    tabindex: "0",
    "aria-label": "Gateways, owners, listeners, routes and backends",
  });
  readonly #empty = element("p", { class: "empty", hidden: true });
  readonly #details = element("aside", { class: "details", "aria-label": "Details" });
  readonly #list: WindowedList<TreeRow>;
  readonly #opened: Map<string, boolean> = new Map();
  #context: ViewContext | undefined;
  #chosen = "";
  #search = "";
  /** Of the last URL that was followed. */
  #followed = "";

  constructor() {
    this.#list = new WindowedList<TreeRow>({
      scroller: this.#scroller,
      role: "none",
      guess: 38,
      keyOf: ({ node }) => node.id,
      signatureOf: (row) => this.#signature(row),
      draw: (row) => this.#draw(row),
    });
    this.#scroller.append(this.#empty, this.#list.element);
    this.#scroller.addEventListener("keydown", (event) => this.#key(event));
    const side = element("div", { class: "side" }, this.#details);
    this.element = element(
      "section",
      { class: "view tree-view", "aria-label": "Tree" },
      element("h1", { class: "hidden" }, this.title),
      this.#summary,
      element("div", { class: "split" }, this.#scroller, side),
    );
  }

  show(context: ViewContext): void {
    this.#context = context;
    const { world, place, search } = context;
    const at = textParameter(place, "at");
    const isNewPlace = at !== this.#followed;
    if (isNewPlace) {
      this.#followed = at;
      for (const { id } of pathTo(world.outline, at)?.slice(0, -1) ?? []) this.#opened.set(id, true);
      this.#chosen = at;
    }
    // What was opened by hand in one search is in the way of the next.
    if (search !== this.#search) this.#opened.clear();
    this.#search = search;
    const summary = summaryStrip(world, context.live.rates);
    const signature = summary.map((child) => (child instanceof Node ? child.textContent : "")).join();
    redraw(this.#summary, signature, () => summary);
    this.#update();
    if (isNewPlace && at !== "") this.#scrollToChosen();
  }

  #update(): void {
    if (this.#context === undefined) return;
    const { world, search } = this.#context;
    const rows = treeRows(world.outline, this.#opened, world.index.filter(search));
    this.#empty.hidden = rows.length > 0;
    this.#empty.textContent =
      search === "" ? "There is no Gateway yet." : `Nothing has “${search}” in its name, hostname or state.`;
    this.#list.setRows(rows);
    const index = this.#chosenIndex();
    const active = rows[index];
    if (active === undefined) this.#scroller.removeAttribute("aria-activedescendant");
    else this.#scroller.setAttribute("aria-activedescendant", elementId(active.node.id));
    this.#showDetails(active?.node);
  }

  #showDetails(node: TreeNode | undefined): void {
    if (this.#context === undefined) return;
    this.#details.classList.toggle("open", node !== undefined && this.#chosen !== "");
    const { world } = this.#context;
    const signature =
      node === undefined
        ? ""
        : JSON.stringify([
            node,
            rowText({ node, isOpen: true }, world.outline, NO_RATES),
            node.type === "gateway" && rolloutOf(node.gateway, world.outline),
          ]);
    const context = this.#context;
    redraw(this.#details, signature, () => detailsOf(node, context, () => this.#choose("")));
  }

  #chosenIndex(): number {
    return this.#list.rows.findIndex(({ node }) => node.id === this.#chosen);
  }

  #choose(id: string): void {
    if (this.#context === undefined) return;
    this.#chosen = id;
    this.#followed = id;
    const { place } = this.#context;
    this.#context.go({ ...place, parameters: { ...place.parameters, at: id } }, "replace");
    this.#update();
    this.#scrollToChosen();
  }

  /** On narrow screens the details lie over the lower half of the tree. */
  #scrollToChosen(): void {
    const index = this.#chosenIndex();
    const isOver = getComputedStyle(this.#details).position === "absolute";
    if (index >= 0) this.#list.scrollTo(index, isOver ? this.#details.offsetHeight : 0);
  }

  #toggle(row: TreeRow, isOpen: boolean = !row.isOpen): void {
    if (!hasChildren(row.node)) return;
    this.#opened.set(row.node.id, isOpen);
    this.#update();
  }

  #key(event: KeyboardEvent): void {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const { rows, pageSize } = this.#list;
    if (event.key === "Escape") this.#choose("");
    const move = moveInTree(event.key, rows, this.#chosenIndex(), pageSize);
    if (move === undefined) return;
    event.preventDefault();
    if (move.choose !== undefined) this.#choose(move.choose);
    const row = rows[this.#chosenIndex()];
    if (move.open !== undefined && row !== undefined) this.#toggle(row, move.open);
  }

  #signature(row: TreeRow): string {
    if (this.#context === undefined) return "";
    const { world, live } = this.#context;
    const { level, isOpen, place, siblings, node } = row;
    const text = rowText(row, world.outline, live.rates);
    return JSON.stringify([text, level, isOpen, place, siblings, node.id === this.#chosen]);
  }

  #draw(row: TreeRow): HTMLElement {
    const { level, isOpen, place, siblings, node } = row;
    if (this.#context === undefined) return element("div");
    const { kind, title, meta, rank, state, note, rate } = rowText(
      row,
      this.#context.world.outline,
      this.#context.live.rates,
    );
    const isParent = hasChildren(node);
    const twisty = element("span", { class: "twisty", "aria-hidden": "true" }, isParent ? "›" : "");
    const item = element(
      "div",
      {
        id: elementId(node.id),
        class: `row ${node.type}`,
        role: "treeitem",
        "aria-level": level,
        "aria-posinset": place,
        "aria-setsize": siblings,
        "aria-expanded": isParent ? String(isOpen) : undefined,
        "aria-selected": String(node.id === this.#chosen),
      },
      element(
        "div",
        { class: "line" },
        twisty,
        rank !== undefined &&
          element("span", { class: "rank", title: "Place in the order of precedence" }, String(rank)),
        element("span", { class: "kind" }, kind),
        element("span", { class: "title" }, title),
        element("span", { class: "meta" }, meta),
        rate !== undefined && element("span", { class: "rate" }, rate.text),
        rate?.errors !== undefined && element("span", { class: "rate bad" }, `${rate.errors} errors`),
        state !== undefined && pill(state.tone, state.text),
      ),
      note !== undefined &&
        element(
          "div",
          { class: `note ${note.tone}` },
          note.text,
          note.holder !== undefined && " — held by ",
          note.holder !== undefined && link(treeFragment(note.holder.node), note.holder.text),
        ),
    );
    item.style.setProperty("--level", String(level - 1));
    item.addEventListener("click", (event) => {
      if (event.target instanceof HTMLAnchorElement) return;
      const isTwisty = event.target === twisty;
      if (isTwisty || node.id === this.#chosen) this.#toggle(row);
      if (!isTwisty) this.#choose(node.id);
    });
    return item;
  }
}

/** Any text may be an id, but spaces would end it where it is referred to. */
function elementId(id: string): string {
  return `node-${id.replaceAll(" ", "_")}`;
}
