import { completionScript, SHELLS, type Shell } from "../completion/completion-script.ts";
import { CannotRun, type Command, defineCommand } from "../foundation/command.ts";

/** Takes the command table as a function, since the table contains this command. */
export function completionCommand(table: () => readonly Command[]): Command {
  return defineCommand({
    name: "completion",
    summary: "print a completion script for your shell",
    about: "The script is complete in itself: pressing Tab starts no program.",
    arguments: [{ name: "SHELL", help: "bash, zsh or fish", count: "one", values: SHELLS }],
    flags: {},
    examples: [
      { line: "source <(mergeway completion bash)", says: "for this session of bash" },
      {
        line: "mergeway completion fish > ~/.config/fish/completions/mergeway.fish",
        says: "for good, in fish",
      },
    ],
    exits: { 0: "the script was printed", 2: "the shell is not known" },
    run: async ({ args: [shell = ""] }, { out }) => {
      if (!SHELLS.includes(shell as Shell)) {
        throw new CannotRun(
          `completion: there is no script for ${shell}`,
          `Use one of ${SHELLS.join(", ")}.`,
        );
      }
      out.write(completionScript(shell as Shell, table()));
      return 0;
    },
  });
}
