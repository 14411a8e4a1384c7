import { randomBytes } from "node:crypto";
import { inspect } from "node:util";

export type Style = "bold" | "dim" | "red" | "green" | "yellow" | "cyan";

/**
 * Standard output or standard error. Styles are left out where colours are not wanted. Names,
 * messages and values in the text are not trusted: control characters are escaped here, and nowhere
 * else.
 */
export interface Terminal {
  /** Writes a document: its line feeds and tabs stay. */
  write(text: string): void;
  /** Writes exactly one line, whatever the text contains. */
  line(text?: string): void;
  style(style: Style, text: string): string;
  /** Writes a document in place of the last one; where there is no terminal, below it. */
  redraw(text: string): void;
  /** In characters; absent: nobody cuts what is written. */
  size(): TerminalSize;
}

export interface TerminalSize {
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
}

export interface TerminalSettings {
  readonly isTty: boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly size?: () => TerminalSize;
}

/** To the upper left corner, and away with everything below it. */
const HOME = "\x1b[H\x1b[J";

export function terminalOn(write: (text: string) => void, settings: TerminalSettings): Terminal {
  const colours = wantsColours(settings);
  const put = (text: string): void =>
    write(text.replace(actingInDocument, escaped).replace(marks, sequenceOf));
  return {
    write: put,
    redraw: (text) => {
      if (canRedraw(settings)) write(HOME);
      put(canRedraw(settings) ? text : `${text}\n`);
    },
    size: () => settings.size?.() ?? {},
    line: (text = "") => put(`${printable(text)}\n`),
    style: (style, text) => (colours ? `${mark(style, 0)}${text}${mark(style, 1)}` : text),
  };
}

/** Joins lines to a document; a line feed inside a line is escaped. */
export function linesOf(lines: readonly string[]): string {
  return lines.map((line) => `${printable(line)}\n`).join("");
}

/** Escapes what acts on a terminal: control characters and marks of bidirectional text. */
export function printable(text: string): string {
  return text.replace(acting, escaped);
}

/** Characters of a line as shown: styles count nothing, escapes count in full. */
export function shownWidth(text: string): number {
  return [...printable(text.replace(marks, ""))].length;
}

const acting = /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/gu;
const actingInDocument = /(?![\n\t])[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/gu;

/** Escapes as JSON does, so that a JSON document stays valid. */
function escaped(character: string): string {
  if (character === "\n") return "\\n";
  if (character === "\t") return "\\t";
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/**
 * A style is first a mark with a random nonce, and becomes an escape sequence only when it is
 * written: text that is not trusted cannot contain a valid mark.
 */
const nonce = randomBytes(12).toString("hex");
const marks = new RegExp(`<${nonce}:([a-z]+):([01])>`, "g");

function mark(style: Style, at: 0 | 1): string {
  return `<${nonce}:${style}:${at}>`;
}

function sequenceOf(_mark: string, style: string, at: string): string {
  return `\x1b[${inspect.colors[style]?.[Number(at)] ?? 0}m`;
}

function canRedraw({ isTty, env }: TerminalSettings): boolean {
  return isTty && env["TERM"] !== "dumb";
}

/** NO_COLOR as on no-color.org; FORCE_COLOR gives colours without a terminal. */
export function wantsColours({ isTty, env }: TerminalSettings): boolean {
  if (env["NO_COLOR"]) return false;
  const forced = env["FORCE_COLOR"];
  if (forced !== undefined && forced !== "") return forced !== "0" && forced !== "false";
  return isTty && env["TERM"] !== "dumb";
}
