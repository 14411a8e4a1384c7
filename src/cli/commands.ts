import { checkCommand } from "./commands/check.ts";
import { completionCommand } from "./commands/completion.ts";
import { controllerCommand } from "./commands/controller.ts";
import { dataplaneCommand } from "./commands/dataplane.ts";
import { demoCommand } from "./commands/demo.ts";
import { explainCommand } from "./commands/explain.ts";
import { pageCommand } from "./commands/page.ts";
import { policyCommand } from "./commands/policy.ts";
import { resolveCommand } from "./commands/resolve.ts";
import { runCommand } from "./commands/run.ts";
import { statusCommand } from "./commands/status.ts";
import { topCommand } from "./commands/top.ts";
import { transferCommand } from "./commands/transfer.ts";
import { tunnelCommand } from "./commands/tunnel.ts";
import { watchCommand } from "./commands/watch.ts";
import { whoCommand } from "./commands/who.ts";
import type { Command } from "./foundation/command.ts";

/** The command table, in the order in which help lists it. */
export const COMMANDS: readonly Command[] = [
  checkCommand,
  statusCommand,
  explainCommand,
  whoCommand,
  resolveCommand,
  transferCommand,
  pageCommand,
  policyCommand,
  runCommand,
  topCommand,
  watchCommand,
  demoCommand,
  tunnelCommand,
  controllerCommand,
  dataplaneCommand,
  completionCommand(() => COMMANDS),
];
