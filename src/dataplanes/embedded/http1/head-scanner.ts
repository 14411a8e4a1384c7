/**
 * Finds the end of a block of lines (a message head, or the fields behind chunks) in bytes that
 * come in pieces of any size.
 *
 *  - Every line ends in CR LF; a bare CR or LF is refused where it stands, and so is any other
 *    control character but the tab.
 *  - The block ends with an empty line and is bounded; one empty line before a request is skipped
 *    (RFC 9112 2.2).
 *
 * Each byte is looked at once, and the verdict is the same wherever the pieces were cut.
 */

const CR = 13;
const LF = 10;
const TAB = 9;
const DEL = 127;
const FIRST_CAPACITY = 1024;

export type ScanVerdict = "complete" | "incomplete" | "malformed" | "too-large";

export class HeadScanner {
  readonly #limit: number;
  /** The block without its last, empty line; every line with its end. */
  text = "";
  /** Where each line of `text` ends, before its CR LF. */
  lineEnds: number[] = [];
  /** Behind the last byte of the piece that was looked at. */
  next = 0;
  #skipsBlank = false;
  /** What has come so far, when it came in more than one piece. */
  #gathered: Buffer | undefined;
  #length = 0;
  #scanned = 0;
  #lineStart = 0;
  #start = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Some of a block has come, and not its end. */
  get begun(): boolean {
    return this.#length > 0;
  }

  begin(skipsBlank: boolean): void {
    this.#skipsBlank = skipsBlank;
    this.#length = 0;
    this.#scanned = 0;
    this.#lineStart = 0;
    this.#start = 0;
    this.lineEnds = [];
  }

  scan(bytes: Buffer, from: number): ScanVerdict {
    if (this.#length > 0) return this.#scanGathered(bytes, from);
    this.#scanned = from;
    this.#lineStart = from;
    this.#start = from;
    const verdict = this.#look(bytes, from, bytes.length);
    if (verdict !== "incomplete") return verdict;
    this.#gather(bytes, from);
    this.#scanned -= from;
    this.#lineStart -= from;
    this.#start -= from;
    this.next = bytes.length;
    return verdict;
  }

  #scanGathered(bytes: Buffer, from: number): ScanVerdict {
    const before = this.#length;
    this.#gather(bytes, from);
    const verdict = this.#look(this.#gathered as Buffer, 0, this.#length);
    // What was found is in the gathered bytes; the caller counts in those of this piece.
    this.next = verdict === "complete" ? this.next - before + from : bytes.length;
    if (verdict === "complete") this.#gathered = undefined;
    return verdict;
  }

  #look(bytes: Buffer, from: number, length: number): ScanVerdict {
    const stop = Math.min(length, from + this.#limit);
    let at = this.#scanned;
    while (at < stop) {
      const byte = bytes[at] as number;
      if (byte >= 32 ? byte !== DEL : byte === TAB) {
        at++;
        continue;
      }
      if (byte !== CR) return "malformed";
      if (at + 1 >= stop) break;
      if (bytes[at + 1] !== LF) return "malformed";
      if (at > this.#lineStart) this.lineEnds.push(at - this.#start);
      else if (this.#skipsBlank && at === this.#start) {
        this.#skipsBlank = false;
        this.#start = at + 2;
      } else {
        this.text = bytes.toString("latin1", this.#start, at);
        this.next = at + 2;
        this.#length = 0;
        return "complete";
      }
      at += 2;
      this.#lineStart = at;
    }
    this.#scanned = at;
    return length - from >= this.#limit ? "too-large" : "incomplete";
  }

  #gather(bytes: Buffer, from: number): void {
    const needed = this.#length + bytes.length - from;
    if (this.#gathered === undefined || this.#gathered.length < needed) {
      const larger = Buffer.allocUnsafe(Math.max(FIRST_CAPACITY, needed * 2));
      this.#gathered?.copy(larger, 0, 0, this.#length);
      this.#gathered = larger;
    }
    bytes.copy(this.#gathered, this.#length, from);
    this.#length = needed;
  }
}
