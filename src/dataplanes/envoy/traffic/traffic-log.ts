/**
 * Reads the log that Envoy counts requests in (traffic-line.ts).
 *
 * It is a regular file on purpose: writing to it never waits for a reader. A FIFO without a reader
 * would stop Envoy's start, and one with a slow reader would make its memory grow. Nobody makes the
 * file shorter while Envoy has it open, so no line is lost: when it is long enough it is renamed,
 * Envoy is told to open its log anew, and the rest of the old file is counted and removed. While
 * nobody reads, the file grows to the size of its volume; Envoy then drops what it cannot write.
 *
 * What Envoy has served is compared with what was counted. What is still missing after several
 * looks has been lost, and is told as such. A restarted agent goes on where the last one ended.
 */

import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import type { TrafficCounts } from "../../traffic/traffic-counts.ts";
import { type EnvoyReading, readEnvoy, since } from "./envoy-reading.ts";
import { type RecordReader, TrafficLines } from "./traffic-line.ts";

export interface TrafficLogOptions {
  readonly path: string;
  readonly gateway: string;
  readonly counts: TrafficCounts;
  /** Envoy's admin interface. */
  readonly ask: (method: "GET" | "POST", path: string) => Promise<string>;
  /** Absent: requests are counted, and nothing more. */
  readonly records?: RecordReader | undefined;
  readonly lookMs?: number;
  /** Looks between two comparisons with what Envoy says it has served. */
  readonly compareEvery?: number;
  /** The length from which on the file is replaced. */
  readonly rotateBytes?: number;
}

/** What the next agent needs, in a file beside the log. */
interface Kept {
  /** Of the file that `position` is in. */
  readonly inode: number;
  readonly position: number;
  /** Served according to Envoy and not counted; lines on their way included. */
  readonly missing: number;
  /** How many of them were told as lost. */
  readonly lost: number;
  readonly reading: EnvoyReading;
}

const LOOK_MS = 1_000;
const COMPARE_EVERY = 3;
/** A request that is missing this many times in a row was lost, and not merely late. */
const COMPARISONS = 4;
const PIECE_BYTES = 256 * 1024;
const ROTATE_BYTES = 1024 * 1024;
const NEW_ENVOY: EnvoyReading = { ended: 0, connections: 0, open: 0, handshakes: 0 };

export class TrafficLog {
  readonly #options: TrafficLogOptions;
  readonly #old: string;
  readonly #lines: TrafficLines;
  readonly #piece: Buffer = Buffer.allocUnsafe(PIECE_BYTES);
  readonly #timer: NodeJS.Timeout;
  readonly #comparisons: number[] = [];
  #kept: Kept;
  #looks = 0;
  #looking: Promise<void> | undefined;
  #closed = false;

  constructor(options: TrafficLogOptions) {
    this.#options = options;
    this.#old = `${options.path}.old`;
    this.#lines = new TrafficLines(options.gateway, options.counts.tally, options.records);
    this.#kept = this.#read();
    this.#timer = setInterval(() => void this.#look(), options.lookMs ?? LOOK_MS).unref();
  }

  /** Counts what is there, a last time. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#looking;
    await this.#look();
    this.#closed = true;
    this.#options.counts.setOpen(this, undefined);
  }

  #look(): Promise<void> {
    this.#looking ??= this.#lookOnce()
      // A file that cannot be read now is tried again; what it lacks is told by the comparison.
      .catch(() => {})
      .finally(() => {
        this.#looking = undefined;
      });
    return this.#looking;
  }

  async #lookOnce(): Promise<void> {
    if (this.#closed) return;
    const before = this.#kept;
    const isReplaced = !existsSync(this.#old) || (await this.#finishOld());
    const size = isReplaced ? await this.#countFrom(this.#options.path) : 0;
    if (this.#looks++ % (this.#options.compareEvery ?? COMPARE_EVERY) === 0) await this.#compare();
    if (size > (this.#options.rotateBytes ?? ROTATE_BYTES)) {
      renameSync(this.#options.path, this.#old);
      await this.#options.ask("POST", "/reopen_logs");
    }
    if (this.#kept !== before) this.#keep();
  }

  /**
   * Counts the old file. It is complete when Envoy has opened the next one, which Envoy does when
   * it has something to write.
   */
  async #finishOld(): Promise<boolean> {
    const isComplete = existsSync(this.#options.path);
    // An Envoy that was busy or away has not heard of it.
    if (!isComplete) await this.#options.ask("POST", "/reopen_logs");
    await this.#countFrom(this.#old);
    if (isComplete) rmSync(this.#old);
    return isComplete;
  }

  /** Counts what is new in a file, and returns its size. */
  async #countFrom(path: string): Promise<number> {
    const file = await open(path, "r").catch(() => undefined);
    if (file === undefined) return 0;
    try {
      const { ino, size } = await file.stat();
      if (ino !== this.#kept.inode) this.#kept = { ...this.#kept, inode: ino, position: 0 };
      // Somebody else has made it shorter.
      if (size < this.#kept.position) this.#kept = { ...this.#kept, position: 0 };
      while (await this.#countPiece(file));
      return size;
    } finally {
      await file.close();
    }
  }

  async #countPiece(file: FileHandle): Promise<boolean> {
    const { bytesRead } = await file.read(this.#piece, 0, PIECE_BYTES, this.#kept.position);
    if (bytesRead === 0) return false;
    const { bytes, requests } = this.#lines.count(this.#piece.subarray(0, bytesRead));
    // A line longer than a piece is none of ours.
    const passed = bytes === 0 && bytesRead === PIECE_BYTES ? bytesRead : bytes;
    const { position, missing } = this.#kept;
    if (passed > 0) this.#kept = { ...this.#kept, position: position + passed, missing: missing - requests };
    return passed > 0 && bytesRead === PIECE_BYTES;
  }

  async #compare(): Promise<void> {
    const { counts, ask, records } = this.#options;
    const reading = await readEnvoy(ask).catch(() => undefined);
    if (reading === undefined) return;
    const { ended, connections, handshakes } = since(this.#kept.reading, reading);
    counts.tally.countConnections(connections);
    if (handshakes > 0) counts.tally.countHandshake("completed", handshakes);
    counts.setOpen(this, reading.open);
    const missing = this.#kept.missing + ended;
    this.#comparisons.push(missing);
    if (this.#comparisons.length > COMPARISONS) this.#comparisons.shift();
    let { lost } = this.#kept;
    if (this.#comparisons.length === COMPARISONS) {
      const sure = Math.min(...this.#comparisons);
      const more = Math.max(0, sure - lost);
      counts.uncounted += more;
      if (more > 0) records?.onMissing(more);
      lost = Math.max(lost, sure);
    }
    this.#kept = { ...this.#kept, missing, lost, reading };
  }

  #read(): Kept {
    try {
      return JSON.parse(readFileSync(this.#keptPath(), "utf8")) as Kept;
    } catch {
      return { inode: 0, position: 0, missing: 0, lost: 0, reading: NEW_ENVOY };
    }
  }

  #keep(): void {
    try {
      const next = `${this.#keptPath()}.next`;
      writeFileSync(next, JSON.stringify(this.#kept));
      renameSync(next, this.#keptPath());
    } catch {
      // The volume is full until the log is read.
    }
  }

  #keptPath(): string {
    return `${this.#options.path}.state`;
  }
}
