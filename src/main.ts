#!/usr/bin/env node
/** The program: the command table, run in this process. */
import { COMMANDS } from "./cli/commands.ts";
import { processHost } from "./cli/process-host.ts";
import { runProgram } from "./cli/program.ts";

process.exitCode = await runProgram(COMMANDS, process.argv.slice(2), processHost());
