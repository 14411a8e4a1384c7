/**
 * A list that draws only the rows in sight. Rows may have any height: it is guessed before a row is
 * drawn, and measured then.
 */
import { offsetsOf, scrollFor, spanInSight } from "../model/windowing.ts";
import { element } from "./element.ts";

export interface ListOptions<Row> {
  /** Element that scrolls. */
  readonly scroller: HTMLElement;
  /** Element that holds the rows; by default the list's own. */
  readonly role?: string;
  readonly guess: number;
  keyOf(row: Row): string;
  /** Everything that `draw` uses, as text: a row that says the same is not drawn again. */
  signatureOf(row: Row): string;
  draw(row: Row, index: number): HTMLElement;
}

const SPARE_ROWS = 8;

interface Drawn {
  readonly element: HTMLElement;
  readonly signature: string;
}

export class WindowedList<Row> {
  readonly element: HTMLElement;
  readonly #options: ListOptions<Row>;
  readonly #content: HTMLElement;
  readonly #heights: Map<string, number> = new Map();
  #drawn: Map<string, Drawn> = new Map();
  #rows: readonly Row[] = [];
  #offsets: Float64Array = offsetsOf(0, () => 0);
  #width = 0;
  #isScheduled = false;

  constructor(options: ListOptions<Row>) {
    this.#options = options;
    const role = options.role ?? "presentation";
    this.#content = element("div", { class: "list-content", role });
    this.element = element("div", { class: "list", role: "presentation" }, this.#content);
    options.scroller.addEventListener("scroll", () => this.#schedule(), { passive: true });
    new ResizeObserver(() => this.#schedule()).observe(options.scroller);
  }

  get rows(): readonly Row[] {
    return this.#rows;
  }

  setRows(rows: readonly Row[]): void {
    this.#rows = rows;
    this.#measure();
    this.render();
  }

  /** Rows on one screen. */
  get pageSize(): number {
    return Math.max(1, Math.floor(this.#options.scroller.clientHeight / this.#options.guess) - 1);
  }

  /** `covered` is the height of what lies over the lower end of the list. */
  scrollTo(index: number, covered = 0): void {
    const { scroller } = this.#options;
    const above = this.#above();
    // The first time heights are guesses; drawing them makes the second time exact.
    for (let turn = 0; turn < 2; turn++) {
      const top = scroller.scrollTop - above;
      const wanted = scrollFor(this.#offsets, index, { top, height: scroller.clientHeight - covered });
      if (wanted === top) return;
      scroller.scrollTop = wanted + (wanted === 0 ? 0 : above);
      this.render();
    }
  }

  render(): void {
    const { scroller } = this.#options;
    if (!this.element.isConnected) return;
    if (scroller.clientWidth !== this.#width) {
      this.#width = scroller.clientWidth;
      this.#heights.clear();
      this.#measure();
    }
    const sight = {
      top: scroller.scrollTop - this.#above(),
      height: scroller.clientHeight,
      spare: SPARE_ROWS,
    };
    const { first, end } = spanInSight(this.#offsets, sight);
    const drawn = new Map<string, Drawn>();
    for (let index = first; index < end; index++) {
      const row = this.#rows[index] as Row;
      const key = this.#options.keyOf(row);
      const signature = this.#options.signatureOf(row);
      const before = this.#drawn.get(key);
      drawn.set(
        key,
        before?.signature === signature ? before : { element: this.#options.draw(row, index), signature },
      );
    }
    this.#drawn = drawn;
    this.#place([...drawn.values()].map((each) => each.element));
    if (this.#learnHeights(drawn)) this.#measure();
    this.#content.style.setProperty("transform", `translateY(${this.#offsets[first] ?? 0}px)`);
    this.element.style.setProperty("height", `${this.#offsets.at(-1) ?? 0}px`);
  }

  /** Elements that stay are not moved: they keep focus and selection. */
  #place(wanted: readonly HTMLElement[]): void {
    const kept = new Set<Element>(wanted);
    for (const child of [...this.#content.children]) if (!kept.has(child)) child.remove();
    let at = this.#content.firstElementChild;
    for (const each of wanted) {
      if (each === at) at = at.nextElementSibling;
      else this.#content.insertBefore(each, at);
    }
  }

  #learnHeights(drawn: ReadonlyMap<string, Drawn>): boolean {
    let isNew = false;
    for (const [key, { element: each }] of drawn) {
      const height = each.offsetHeight;
      if (height === 0 || this.#heights.get(key) === height) continue;
      this.#heights.set(key, height);
      isNew = true;
    }
    return isNew;
  }

  #measure(): void {
    const { guess, keyOf } = this.#options;
    this.#offsets = offsetsOf(
      this.#rows.length,
      (index) => this.#heights.get(keyOf(this.#rows[index] as Row)) ?? guess,
    );
  }

  /** Height of what is above the list in the same scroller. */
  #above(): number {
    const { scroller } = this.#options;
    return (
      this.element.getBoundingClientRect().top - scroller.getBoundingClientRect().top + scroller.scrollTop
    );
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    requestAnimationFrame(() => {
      this.#isScheduled = false;
      this.render();
    });
  }
}
