import { randomBytes } from "node:crypto";
import { inspect } from "node:util";

export type Style = "bold" | "dim" | "red" | "green" | "yellow" | "cyan";

/**
 * Where text goes. Colours are asked for by meaning and left out where nobody would see them.
 * Names, messages and values in the text may be anybody's: control characters in them are shown as
 * escapes, here and nowhere else.
 */
export interface Terminal {
  /** A document: its line feeds and tabs stay. */
  write(text: string): void;
  /** Exactly one line, whatever is in it. */
  line(text?: string): void;
  style(style: Style, text: string): string;
}

export interface TerminalSettings {
  readonly isTty: boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
}

export function terminalOn(write: (text: string) => void, settings: TerminalSettings): Terminal {
  const colours = wantsColours(settings);
  const put = (text: string): void =>
    write(text.replace(actingInDocument, escaped).replace(marks, sequenceOf));
  return {
    write: put,
    line: (text = "") => put(`${printable(text)}\n`),
    style: (style, text) => (colours ? `${mark(style, 0)}${text}${mark(style, 1)}` : text),
  };
}

/** Lines that are joined to a document; none of them can begin another. */
export function linesOf(lines: readonly string[]): string {
  return lines.map((line) => `${printable(line)}\n`).join("");
}

/**
 * Text on one line, without anything that acts on a terminal: controls, and marks that change the
 * direction of reading.
 */
export function printable(text: string): string {
  return text.replace(acting, escaped);
}

/** How many characters are shown of a line. */
export function shownWidth(text: string): number {
  return [...printable(text.replace(marks, ""))].length;
}

const acting = /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/gu;
const actingInDocument = /(?![\n\t])[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/gu;

/** As JSON writes them, so that a JSON document stays one. */
function escaped(character: string): string {
  if (character === "\n") return "\\n";
  if (character === "\t") return "\\t";
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/**
 * A style is marked with a word that nobody else can know, and becomes an escape sequence when it
 * is written: a sequence that is in somebody's text is never taken for one of these.
 */
const word = randomBytes(12).toString("hex");
const marks = new RegExp(`<${word}:([a-z]+):([01])>`, "g");

function mark(style: Style, at: 0 | 1): string {
  return `<${word}:${style}:${at}>`;
}

function sequenceOf(_mark: string, style: string, at: string): string {
  return `\x1b[${inspect.colors[style]?.[Number(at)] ?? 0}m`;
}

/**
 * no-color.org: NO_COLOR with any value but the empty one wins; FORCE_COLOR asks for colours where
 * there is no terminal.
 */
export function wantsColours({ isTty, env }: TerminalSettings): boolean {
  if (env["NO_COLOR"]) return false;
  const forced = env["FORCE_COLOR"];
  if (forced !== undefined && forced !== "") return forced !== "0" && forced !== "false";
  return isTty && env["TERM"] !== "dumb";
}
