/** A small logger that is handed down; there is no global one. */
import type { Style, Terminal } from "../foundation/terminal.ts";

export type Level = "info" | "warn" | "error";
export type Fields = Readonly<Record<string, unknown>>;

export interface Logger {
  info(message: string, fields?: Fields): void;
  warn(message: string, fields?: Fields): void;
  error(message: string, fields?: Fields): void;
}

export type LogFormat = "pretty" | "json";

export function createLogger(format: LogFormat, terminal: Terminal, now: () => Date): Logger {
  const write = format === "json" ? jsonLine : prettyLine;
  const at =
    (level: Level) =>
    (message: string, fields: Fields = {}): void =>
      terminal.line(write({ level, message, fields, time: now() }, terminal));
  return { info: at("info"), warn: at("warn"), error: at("error") };
}

interface Entry {
  readonly level: Level;
  readonly message: string;
  readonly fields: Fields;
  readonly time: Date;
}

function jsonLine({ level, message, fields, time }: Entry): string {
  return JSON.stringify({ time: time.toISOString(), level, message, ...fields });
}

const STYLE: Readonly<Record<Level, Style>> = { info: "cyan", warn: "yellow", error: "red" };

/** The message is a whole sentence already; fields are for machines. */
function prettyLine({ level, message, time }: Entry, { style }: Terminal): string {
  return `${style("dim", time.toISOString().slice(11, 19))} ${style(STYLE[level], level.padEnd(5))} ${message}`;
}
