import type { Command } from "./command.ts";
import { completionCommand } from "./commands/completion.ts";
import { demoCommand } from "./commands/demo.ts";
import { runCommand } from "./commands/run.ts";
import { statusCommand } from "./commands/status.ts";

/** The command table, in the order of help. */
export const COMMANDS: readonly Command[] = [
  statusCommand,
  runCommand,
  demoCommand,
  completionCommand(() => COMMANDS),
];
