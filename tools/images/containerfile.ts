// Reads the Containerfile, so that the test bed's image is made from the description that a
// container builder uses. Only a small part of the language is known. Everything else is refused:
// an instruction that was skipped would make the two images differ.

import { ClusterFailure } from "../host/failure.ts";

export interface Containerfile {
  readonly stages: readonly Stage[];
}

export interface Stage {
  /** The image that the stage begins with. */
  readonly from: string;
  readonly name: string | undefined;
  readonly steps: readonly Step[];
}

export type Step =
  | Copy
  | { readonly kind: "env" | "label"; readonly pairs: Readonly<Record<string, string>> }
  | { readonly kind: "user" | "workdir"; readonly value: string }
  | { readonly kind: "entrypoint"; readonly command: readonly string[] }
  | { readonly kind: "run"; readonly command: string };

export interface Copy {
  readonly kind: "copy";
  /** An earlier stage; the build's context when undefined. */
  readonly from: string | undefined;
  readonly paths: readonly string[];
  readonly to: string;
}

type Variables = ReadonlyMap<string, string>;

interface Instruction {
  readonly word: string;
  readonly rest: string;
  readonly line: number;
}

/** `args` are values for ARG instructions, as `--build-arg` gives them. */
export function parseContainerfile(text: string, args: Readonly<Record<string, string>> = {}): Containerfile {
  const given = new Map(Object.entries(args));
  const unused = new Set(given.keys());
  const global = new Map([["BUILDPLATFORM", "linux/amd64"]]);
  let variables = global;
  const stages: { from: string; name: string | undefined; steps: Step[] }[] = [];
  for (const instruction of instructionsOf(text)) {
    const stage = stages.at(-1);
    if (instruction.word === "ARG") {
      const { name, value } = argument(instruction);
      variables.set(name, given.get(name) ?? substitute({ ...instruction, rest: value }, variables));
      unused.delete(name);
    } else if (instruction.word === "FROM") {
      stages.push({ ...beginning(instruction, global), steps: [] });
      variables = new Map();
    } else if (stage === undefined) {
      throw refusal(instruction, "only ARG may come before the first FROM");
    } else {
      const step = stepOf(instruction, variables);
      stage.steps.push(step);
      if (step.kind === "env")
        for (const [name, value] of Object.entries(step.pairs)) variables.set(name, value);
    }
  }
  if (stages.length === 0) throw new ClusterFailure("Containerfile: there is no FROM");
  if (unused.size > 0) throw new ClusterFailure(`Containerfile: there is no ARG ${[...unused].join(", ")}`);
  return { stages };
}

/** Joins continued lines and leaves out comments, which are allowed between them. */
function instructionsOf(text: string): readonly Instruction[] {
  const found: Instruction[] = [];
  let open: { text: string; line: number } | undefined;
  for (const [index, raw] of text.split("\n").entries()) {
    const content = raw.trim();
    if (content.startsWith("#") || content === "") continue;
    const isContinued = content.endsWith("\\");
    const piece = isContinued ? content.slice(0, -1).trimEnd() : content;
    open = open === undefined ? { text: piece, line: index + 1 } : { ...open, text: `${open.text} ${piece}` };
    if (isContinued) continue;
    const [, word = "", rest = ""] = /^(\S+)\s*(.*)$/.exec(open.text) ?? [];
    found.push({ word, rest, line: open.line });
    open = undefined;
  }
  if (open !== undefined)
    throw new ClusterFailure(`Containerfile:${open.line}: the last line ends with a \\`);
  return found;
}

function argument(instruction: Instruction): { readonly name: string; readonly value: string } {
  const [, name, value] = /^([A-Z_]+)=(\S+)$/.exec(instruction.rest) ?? [];
  if (name === undefined || value === undefined) throw refusal(instruction, "write ARG NAME=DEFAULT");
  return { name, value };
}

function beginning(instruction: Instruction, variables: Variables): Pick<Stage, "from" | "name"> {
  const text = substitute(instruction, variables);
  const [, from, name] = /^(?:--platform=\S+ )?([^\s-]\S*)(?: AS ([a-z]+))?$/.exec(text) ?? [];
  if (from === undefined) throw refusal(instruction, "write FROM [--platform=…] IMAGE [AS name]");
  return { from, name };
}

function stepOf(instruction: Instruction, variables: Variables): Step {
  // A shell has its own variables.
  if (instruction.word === "RUN") return { kind: "run", command: shellCommand(instruction) };
  const text = substitute(instruction, variables);
  switch (instruction.word) {
    case "COPY":
      return copy(instruction, text);
    case "ENV":
      return { kind: "env", pairs: pairs(instruction, text) };
    case "LABEL":
      return { kind: "label", pairs: pairs(instruction, text) };
    case "USER":
      return { kind: "user", value: oneWord(instruction, text) };
    case "WORKDIR":
      return { kind: "workdir", value: oneWord(instruction, text) };
    case "ENTRYPOINT":
      return { kind: "entrypoint", command: execForm(instruction, text) };
    default:
      throw refusal(instruction, `${instruction.word} is not known here`);
  }
}

function shellCommand(instruction: Instruction): string {
  if (/^(?:--|\[)|<</.test(instruction.rest))
    throw refusal(instruction, "write RUN COMMAND, without options");
  return instruction.rest;
}

function copy(instruction: Instruction, text: string): Step {
  const [, from] = /^--from=([a-z]+) /.exec(text) ?? [];
  const words = text.split(/\s+/).slice(from === undefined ? 0 : 1);
  const to = words.at(-1) ?? "";
  const paths = words.slice(0, -1);
  if (paths.length === 0 || words.some((word) => /^--|^\[|[*?]|<</.test(word))) {
    throw refusal(
      instruction,
      "write COPY [--from=stage] SOURCE… TARGET, without other options and patterns",
    );
  }
  if (paths.length > 1 && !to.endsWith("/")) throw refusal(instruction, "several sources need a TARGET/");
  return { kind: "copy", from, paths, to };
}

function pairs(instruction: Instruction, text: string): Readonly<Record<string, string>> {
  const pair = /([\w.]+)=(?:"([^"\\]*)"|([^\s"'\\]+))(?:\s+|$)/y;
  const found: Record<string, string> = {};
  while (pair.lastIndex < text.length) {
    const [, name = "", quoted, plain] = pair.exec(text) ?? [];
    const value = quoted ?? plain;
    if (value === undefined) throw refusal(instruction, `write NAME=VALUE or NAME="VALUE"`);
    found[name] = value;
  }
  return found;
}

function oneWord(instruction: Instruction, text: string): string {
  if (!/^\S+$/.test(text)) throw refusal(instruction, "one word is expected");
  return text;
}

/** The shell form needs a shell, and the image has none. */
function execForm(instruction: Instruction, text: string): readonly string[] {
  try {
    const command = JSON.parse(text) as unknown;
    if (Array.isArray(command) && command.length > 0 && command.every((word) => typeof word === "string")) {
      return command;
    }
  } catch {
    // Refused below.
  }
  throw refusal(instruction, `write ENTRYPOINT ["program", "argument"]`);
}

function substitute(instruction: Instruction, variables: Variables): string {
  const text = instruction.rest.replaceAll(/\$\{([A-Z_]+)\}/g, (_, name: string) => {
    const value = variables.get(name);
    if (value === undefined) throw refusal(instruction, `there is no ARG ${name} in this stage`);
    return value;
  });
  if (text.includes("$")) throw refusal(instruction, "variables are written with braces");
  return text;
}

function refusal({ line, word }: Instruction, reason: string): ClusterFailure {
  return new ClusterFailure(`Containerfile:${line}: ${word}: ${reason}`);
}
