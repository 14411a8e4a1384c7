/** A table whose rows are drawn when they come into sight. */
import { type Child, element } from "../dom/element.ts";
import { WindowedList } from "../dom/windowed-list.ts";

export interface TableOptions<Row> {
  readonly label: string;
  readonly columns: readonly string[];
  readonly guess: number;
  readonly className: string;
  keyOf(row: Row): string;
  signatureOf(row: Row): string;
  /** The cells, or one child for a heading that spans all columns. */
  cellsOf(row: Row): readonly (readonly Child[])[];
}

export class Table<Row> {
  readonly element: HTMLElement;
  readonly #list: WindowedList<Row>;
  readonly #table: HTMLElement;
  readonly #empty = element("p", { class: "empty", hidden: true });

  constructor({ label, columns, guess, className, keyOf, signatureOf, cellsOf }: TableOptions<Row>) {
    this.element = element("div", {
      class: `scroller ${className}`,
      tabindex: "0",
      role: "region",
      "aria-label": label,
    });
    this.#list = new WindowedList<Row>({
      scroller: this.element,
      role: "rowgroup",
      guess,
      keyOf,
      signatureOf,
      draw: (row, index) => {
        const cells = cellsOf(row);
        const isHeading = cells.length === 1;
        return element(
          "div",
          { class: isHeading ? "record heading" : "record", role: "row", "aria-rowindex": index + 2 },
          ...cells.map((children, column) =>
            element(
              "div",
              {
                class: "cell",
                role: isHeading ? "rowheader" : "cell",
                "aria-colspan": isHeading ? columns.length : undefined,
                "data-column": isHeading ? undefined : columns[column],
              },
              ...children,
            ),
          ),
        );
      },
    });
    const head = element(
      "div",
      { class: "record head", role: "row" },
      ...columns.map((column) => element("div", { class: "cell", role: "columnheader" }, column)),
    );
    this.#table = element(
      "div",
      { role: "table", "aria-label": label, "aria-colcount": columns.length },
      element("div", { role: "rowgroup", class: "heads" }, head),
      this.#list.element,
    );
    this.element.append(this.#table, this.#empty);
  }

  setRows(rows: readonly Row[], ifEmpty: string): void {
    this.#empty.hidden = rows.length > 0;
    this.#empty.textContent = ifEmpty;
    this.#table.setAttribute("aria-rowcount", String(rows.length + 1));
    this.#list.setRows(rows);
  }
}
