import { styleText } from "node:util";

export type Style = "bold" | "dim" | "red" | "green" | "yellow" | "cyan";

/** Where text goes. Colours are asked for by meaning and left out where nobody would see them. */
export interface Terminal {
  write(text: string): void;
  line(text?: string): void;
  style(style: Style, text: string): string;
}

export interface TerminalSettings {
  readonly isTty: boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
}

export function terminalOn(write: (text: string) => void, settings: TerminalSettings): Terminal {
  const colours = wantsColours(settings);
  return {
    write,
    line: (text = "") => write(`${text}\n`),
    style: (style, text) => (colours ? styleText(style, text, { validateStream: false }) : text),
  };
}

/** no-color.org: NO_COLOR with any value but the empty one wins; FORCE_COLOR asks for colours where there is no terminal. */
export function wantsColours({ isTty, env }: TerminalSettings): boolean {
  if (env["NO_COLOR"]) return false;
  const forced = env["FORCE_COLOR"];
  if (forced !== undefined && forced !== "") return forced !== "0" && forced !== "false";
  return isTty && env["TERM"] !== "dumb";
}
