/** A command, declared once: parsing, help, completion and the reference page are made from it. */
import type { Terminal } from "./terminal.ts";

interface FlagBase {
  readonly short?: string;
  /** One line, no full stop. */
  readonly help: string;
}

export interface SwitchFlag extends FlagBase {
  readonly type: "switch";
}

export interface TextFlag extends FlagBase {
  readonly type: "text";
  /** Placeholder of the value in help: FILE, HOST. */
  readonly value: string;
  readonly default?: string;
  /** The value when the flag is given without one. */
  readonly bare?: string;
}

export interface NumberFlag extends FlagBase {
  readonly type: "number";
  readonly value: string;
  readonly default?: number;
  readonly min: number;
  readonly max: number;
}

export interface ChoiceFlag extends FlagBase {
  readonly type: "choice";
  readonly values: readonly string[];
  readonly default: string;
}

/** May be given several times. */
export interface ListFlag extends FlagBase {
  readonly type: "list";
  readonly value: string;
}

export type Flag = SwitchFlag | TextFlag | NumberFlag | ChoiceFlag | ListFlag;
export type Flags = Readonly<Record<string, Flag>>;

export interface Argument {
  readonly name: string;
  readonly help: string;
  /** `one` exactly one, `some` one or more, `any` none or more. */
  readonly count: "one" | "some" | "any";
  /** Completion offers these words instead of file names. */
  readonly values?: readonly string[];
}

export interface Example {
  readonly line: string;
  readonly says: string;
}

type ValueOf<F extends Flag> = F extends SwitchFlag
  ? boolean
  : F extends ListFlag
    ? readonly string[]
    : F extends ChoiceFlag
      ? F["values"][number]
      : F extends NumberFlag
        ? F extends { readonly default: number }
          ? number
          : number | undefined
        : F extends { readonly default: string }
          ? string
          : string | undefined;

export type FlagValues<F extends Flags> = { readonly [Name in keyof F]: ValueOf<F[Name]> };

export interface CommandSpec<F extends Flags> {
  readonly name: string;
  /** One line, no full stop. */
  readonly summary: string;
  /** What help and the reference page say beyond the flags. */
  readonly about: string;
  readonly arguments: readonly Argument[];
  readonly flags: F;
  readonly examples: readonly Example[];
  /** What each exit code of this command means. */
  readonly exits: Readonly<Partial<Record<ExitCode, string>>>;
  run(
    input: { readonly args: readonly string[]; readonly flags: FlagValues<F> },
    host: Host,
  ): Promise<ExitCode>;
}

export type Command = CommandSpec<Flags>;

/** Checks the types of the flags inside the declaration; outside, all commands have one type. */
export function defineCommand<const F extends Flags>(spec: CommandSpec<F>): Command {
  return spec as unknown as Command;
}

/** 0: success. 1: the command ran and found something. 2: it could not run. */
export type ExitCode = 0 | 1 | 2;

/** The process around a command: streams, environment, signals, clock. */
export interface Host {
  readonly out: Terminal;
  readonly err: Terminal;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly version: string;
  /**
   * Aborted by the first SIGINT or SIGTERM; a second one ends the process at once. The handlers are
   * installed when this is first read: without that, the first signal ends the process.
   */
  readonly signal: AbortSignal;
  now(): Date;
}

/** The command cannot run; the message says why, `remedy` what to do. The exit code is 2. */
export class CannotRun extends Error {
  readonly remedy: string | undefined;

  constructor(message: string, remedy?: string, cause?: unknown) {
    super(message, { cause });
    this.name = "CannotRun";
    this.remedy = remedy;
  }
}
