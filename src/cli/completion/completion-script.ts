/** Completion scripts, made from the command table; pressing Tab starts no process. */
import type { Command, Flag } from "../foundation/command.ts";

export type Shell = "bash" | "zsh" | "fish";
export const SHELLS: readonly Shell[] = ["bash", "zsh", "fish"];

export function completionScript(shell: Shell, commands: readonly Command[]): string {
  return { bash, zsh, fish }[shell](commands);
}

function bash(commands: readonly Command[]): string {
  const flagCases = commands.map(
    ({ name, flags }) =>
      `    ${name}) flags="${[...Object.keys(flags).flatMap((flag) => spellings(flag, flags[flag])), "--help"].join(" ")}" ;;`,
  );
  const valueCases = commands.flatMap(({ name, flags, arguments: [argument] }) => [
    ...Object.entries(flags).flatMap(([flag, spec]) =>
      spec.type === "choice"
        ? spellings(flag, spec).map((word) => `    "${name} ${word}") words="${spec.values.join(" ")}" ;;`)
        : [],
    ),
    ...(argument?.values === undefined
      ? []
      : [`    "${name} "*) [[ $cur != -* ]] && words="${argument.values.join(" ")}" ;;`]),
  ]);
  return `# bash completion of mergeway. To use it: source <(mergeway completion bash)
_mergeway() {
  local cur prev command flags words
  cur="\${COMP_WORDS[COMP_CWORD]}"
  prev="\${COMP_WORDS[COMP_CWORD-1]}"
  command="\${COMP_WORDS[1]}"
  COMPREPLY=()
  if [[ $COMP_CWORD -eq 1 ]]; then
    COMPREPLY=($(compgen -W "${commands.map(({ name }) => name).join(" ")} --help --version" -- "$cur"))
    return
  fi
  case "$command $prev" in
${valueCases.join("\n")}
  esac
  if [[ -n $words ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
    return
  fi
  case "$command" in
${flagCases.join("\n")}
  esac
  if [[ $cur == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$cur"))
  else
    compopt -o filenames 2>/dev/null
    COMPREPLY=($(compgen -f -- "$cur"))
  fi
}
complete -F _mergeway mergeway
`;
}

function zsh(commands: readonly Command[]): string {
  const cases = commands.map(({ name, flags, arguments: [argument] }) => {
    const specs = Object.entries(flags).flatMap(([flag, spec]) =>
      spellings(flag, spec).map(
        (word) => `'${repeated(spec)}${word}[${zshText(spec.help)}]${zshValue(spec)}'`,
      ),
    );
    const rest =
      argument === undefined
        ? []
        : [
            argument.values === undefined
              ? "'*:path:_files'"
              : `'1:${argument.name}:(${argument.values.join(" ")})'`,
          ];
    return `    ${name}) _arguments ${[...specs, ...rest].join(" ")} ;;`;
  });
  return `#compdef mergeway
# zsh completion of mergeway. To use it: source <(mergeway completion zsh)
_mergeway() {
  local -a commands
  commands=(
${commands.map(({ name, summary }) => `    '${name}:${zshText(summary)}'`).join("\n")}
  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
${cases.join("\n")}
  esac
}
compdef _mergeway mergeway
`;
}

function zshValue(flag: Flag): string {
  if (flag.type === "switch") return "";
  if (flag.type === "choice") return `:value:(${flag.values.join(" ")})`;
  return flag.value === "PATH" || flag.value === "FILE" || flag.value === "DIR"
    ? ":path:_files"
    : `:${flag.value}:`;
}

function repeated(flag: Flag): string {
  return flag.type === "list" ? "*" : "";
}

function zshText(text: string): string {
  return text.replace(/'/g, "’").replace(/[[\]:]/g, "\\$&");
}

function fish(commands: readonly Command[]): string {
  const lines = commands.flatMap(({ name, summary, flags, arguments: [argument] }) => [
    `complete -c mergeway -f -n __fish_use_subcommand -a ${name} -d '${fishText(summary)}'`,
    ...Object.entries(flags).map(([flag, spec]) => {
      const short = spec.short === undefined ? "" : ` -s ${spec.short}`;
      const value =
        spec.type === "switch" ? "" : spec.type === "choice" ? ` -x -a '${spec.values.join(" ")}'` : " -r";
      return `complete -c mergeway -n '__fish_seen_subcommand_from ${name}' -l ${flag}${short}${value} -d '${fishText(spec.help)}'`;
    }),
    ...(argument?.values === undefined
      ? []
      : [
          `complete -c mergeway -f -n '__fish_seen_subcommand_from ${name}' -a '${argument.values.join(" ")}'`,
        ]),
  ]);
  return `# fish completion of mergeway. To use it: mergeway completion fish | source
${lines.join("\n")}
`;
}

function fishText(text: string): string {
  return text.replace(/'/g, "\\'");
}

function spellings(name: string, flag: Flag | undefined): string[] {
  return [`--${name}`, ...(flag?.short === undefined ? [] : [`-${flag.short}`])];
}
