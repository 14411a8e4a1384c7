import { appendFile, mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ItemId } from "../../plan/plan.ts";
import { PlanDigest } from "./plan-digest.ts";
import { digestOf } from "./protocol.ts";

/**
 * The last good plan on disk, so that a pod serves at once after its own restart, controller or not. A journal: each change costs its own size; it is written anew
 * when it has grown to several times what it holds. A line that was cut by a crash is the last one and is left out.
 */
export class PlanJournal {
  readonly #file: string;
  readonly #items: Map<ItemId, string> = new Map();
  readonly #digest: PlanDigest = new PlanDigest();
  #lines = 0;
  #writing: Promise<void> = Promise.resolve();

  private constructor(file: string) {
    this.#file = file;
  }

  static async open(directory: string): Promise<PlanJournal> {
    await mkdir(directory, { recursive: true });
    const journal = new PlanJournal(join(directory, "plan.ndjson"));
    const text = await readFile(journal.#file, "utf8").catch(() => "");
    for (const line of text.split("\n")) {
      if (line === "") continue;
      try {
        journal.#note(JSON.parse(line) as JournalLine);
      } catch {
        break;
      }
    }
    return journal;
  }

  /** Encoded items by id. */
  get items(): ReadonlyMap<ItemId, string> {
    return this.#items;
  }

  /** Of all items. */
  get digest(): string {
    return this.#digest.text;
  }

  record(upserts: ReadonlyMap<ItemId, string>, removes: readonly ItemId[]): void {
    const lines: JournalLine[] = [
      ...[...upserts].map(([id, item]) => ({ id, item })),
      ...removes.map((id) => ({ id })),
    ];
    for (const line of lines) this.#note(line);
    const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
    this.#writing = this.#writing
      .then(() =>
        this.#lines > 3 * this.#items.size + 100
          ? this.#compact()
          : appendFile(this.#file, text, { mode: 0o600 }),
      )
      // A full disk must not stop the serving of traffic; the next start just begins with an older plan.
      .catch(() => {});
  }

  flushed(): Promise<void> {
    return this.#writing;
  }

  #note({ id, item }: JournalLine): void {
    this.#lines++;
    const before = this.#items.get(id);
    if (before !== undefined) this.#digest.toggle(digestOf(before));
    if (item !== undefined) this.#digest.toggle(digestOf(item));
    if (item === undefined) this.#items.delete(id);
    else this.#items.set(id, item);
  }

  async #compact(): Promise<void> {
    const text = [...this.#items].map(([id, item]) => `${JSON.stringify({ id, item })}\n`).join("");
    await writeFile(`${this.#file}.new`, text, { mode: 0o600 });
    await rename(`${this.#file}.new`, this.#file);
    this.#lines = this.#items.size;
  }
}

interface JournalLine {
  readonly id: ItemId;
  readonly item?: string;
}
