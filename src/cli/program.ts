import { parseCommandLine } from "./command-line.ts";
import { CannotRun, type Command, type ExitCode, type Host } from "./foundation/command.ts";
import { commandHelp, programHelp } from "./help.ts";

/** Runs one command line. Errors go to standard error; nothing is thrown. */
export async function runProgram(
  commands: readonly Command[],
  argv: readonly string[],
  host: Host,
): Promise<ExitCode> {
  try {
    const request = parseCommandLine(commands, argv);
    switch (request.type) {
      case "version":
        host.out.line(host.version);
        return 0;
      case "help":
        host.out.write(
          request.command === undefined
            ? programHelp(commands, host.out)
            : commandHelp(request.command, host.out),
        );
        return 0;
      case "run":
        return await request.command.run({ args: request.args, flags: request.flags as never }, host);
    }
  } catch (error) {
    printError(error, host);
    return 2;
  }
}

function printError(error: unknown, { err, env }: Host): void {
  if (error instanceof CannotRun) {
    err.line(`${err.style("red", "error:")} ${error.message}`);
    if (error.remedy !== undefined) err.line(error.remedy);
    return;
  }
  const shown = error instanceof Error ? error : new Error(String(error));
  err.line(`${err.style("red", "error:")} ${shown.message}`);
  if (env["MERGEWAY_DEBUG"]) err.write(`${shown.stack ?? ""}\n`);
  else err.line("This should not have happened. Run it again with MERGEWAY_DEBUG=1 to see where.");
}
