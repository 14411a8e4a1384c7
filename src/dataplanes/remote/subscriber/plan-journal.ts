import { createReadStream } from "node:fs";
import { appendFile, mkdir, open, rename } from "node:fs/promises";
import { join } from "node:path";
import type { ItemId } from "../../../plan/plan.ts";
import { readLines } from "../protocol/lines.ts";
import { PlanDigest } from "../protocol/plan-digest.ts";
import { digestOf } from "../protocol/protocol.ts";
import type { Journal } from "./plan-subscriber.ts";

const NO_LIMIT = (): number => Number.POSITIVE_INFINITY;

/**
 * The last plan on disk, so that a restarted pod serves at once, also without a controller. Each
 * change is appended. The file is rewritten when most of its lines are outdated, and after a crash
 * that has cut its last line. Items are kept on disk only; in memory there is a digest of each.
 */
export class PlanJournal implements Journal {
  readonly #file: string;
  readonly #digests: Map<ItemId, string> = new Map();
  readonly #digest: PlanDigest = new PlanDigest();
  /** What the file contains; it is behind `#digests` while writes are queued. */
  readonly #written: Map<ItemId, string> = new Map();
  #saved: Map<ItemId, string> = new Map();
  #lines = 0;
  #isCut = false;
  #writing: Promise<void> = Promise.resolve();

  private constructor(file: string) {
    this.#file = file;
  }

  static async open(directory: string): Promise<PlanJournal> {
    await mkdir(directory, { recursive: true });
    const journal = new PlanJournal(join(directory, "plan.ndjson"));
    try {
      for await (const line of linesOf(journal.#file)) journal.#load(JSON.parse(line) as JournalLine);
      journal.#isCut = !(await endsWithLine(journal.#file));
    } catch (error) {
      journal.#isCut = !isAbsent(error);
    }
    return journal;
  }

  get digests(): ReadonlyMap<ItemId, string> {
    return this.#digests;
  }

  get digest(): string {
    return this.#digest.text;
  }

  takeSaved(): Iterable<string> {
    const saved = this.#saved.values();
    this.#saved = new Map();
    return saved;
  }

  record(upserts: ReadonlyMap<ItemId, string>, removes: readonly ItemId[]): void {
    const lines: JournalLine[] = [
      ...[...upserts].map(([id, item]) => ({ id, item })),
      ...removes.map((id) => ({ id })),
    ];
    const digests = lines.map(({ id, item }) => [id, this.#note(id, item)] as const);
    const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
    this.#writing = this.#writing
      .then(() => this.#append(text, digests))
      // A full disk must not stop traffic. The next start begins with an older plan.
      .catch(() => {});
  }

  flushed(): Promise<void> {
    return this.#writing;
  }

  async #append(text: string, digests: readonly WrittenDigest[]): Promise<void> {
    // Lines after a cut line could not be read.
    if (this.#isCut) await this.#compact();
    await appendFile(this.#file, text, { mode: 0o600 });
    for (const written of digests) this.#wrote(written);
    if (this.#lines > 3 * this.#written.size + 100) await this.#compact();
  }

  #load({ id, item }: JournalLine): void {
    if (item === undefined) this.#saved.delete(id);
    else this.#saved.set(id, item);
    this.#wrote([id, this.#note(id, item)]);
  }

  #note(id: ItemId, item: string | undefined): string | undefined {
    const before = this.#digests.get(id);
    if (before !== undefined) this.#digest.toggle(before);
    this.#digests.delete(id);
    if (item === undefined) return undefined;
    const digest = digestOf(item);
    this.#digest.toggle(digest);
    this.#digests.set(id, digest);
    return digest;
  }

  #wrote([id, digest]: WrittenDigest): void {
    this.#lines++;
    if (digest === undefined) this.#written.delete(id);
    else this.#written.set(id, digest);
  }

  /** Copies the current line of each item to a new file, one by one, to save memory. */
  async #compact(): Promise<void> {
    const rewritten = await open(`${this.#file}.new`, "w", 0o600);
    const kept = new Set<ItemId>();
    try {
      for await (const line of linesOf(this.#file)) {
        const parsed = parsedLine(line);
        if (parsed === undefined) break;
        const { id, item } = parsed;
        if (item === undefined || kept.has(id) || this.#written.get(id) !== digestOf(item)) continue;
        kept.add(id);
        await rewritten.write(`${line}\n`);
      }
    } finally {
      await rewritten.close();
    }
    await rename(`${this.#file}.new`, this.#file);
    this.#lines = kept.size;
    this.#isCut = false;
  }
}

type WrittenDigest = readonly [ItemId, string | undefined];

interface JournalLine {
  readonly id: ItemId;
  readonly item?: string;
}

function linesOf(file: string): AsyncGenerator<string> {
  return readLines(createReadStream(file), NO_LIMIT);
}

function parsedLine(line: string): JournalLine | undefined {
  try {
    return JSON.parse(line) as JournalLine;
  } catch {
    return undefined;
  }
}

async function endsWithLine(file: string): Promise<boolean> {
  const opened = await open(file);
  try {
    const { size } = await opened.stat();
    if (size === 0) return true;
    const { buffer } = await opened.read(Buffer.alloc(1), 0, 1, size - 1);
    return buffer[0] === 0x0a;
  } finally {
    await opened.close();
  }
}

function isAbsent(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "ENOENT";
}
