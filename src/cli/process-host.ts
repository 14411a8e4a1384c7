/** The `Host` of a real process: its streams, signals, and a clock that tests can fix. */
import { readFileSync } from "node:fs";
import type { Host } from "./foundation/command.ts";
import { type Terminal, terminalOn } from "./foundation/terminal.ts";

const INTERRUPTED = 130;

export function processHost(): Host {
  let stop: AbortSignal | undefined;
  return {
    out: streamTerminal(process.stdout),
    err: streamTerminal(process.stderr),
    env: process.env,
    version: packageVersion(),
    get signal() {
      stop ??= stopSignal();
      return stop;
    },
    now: () => timeOf(process.env["SOURCE_DATE_EPOCH"]) ?? new Date(),
  };
}

function stopSignal(): AbortSignal {
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.on(signal, () => {
      if (stop.signal.aborted) process.exit(INTERRUPTED);
      stop.abort(signal);
    });
  }
  return stop.signal;
}

/** A reader that closes the pipe early (`| head`) is not an error. */
function streamTerminal(stream: NodeJS.WriteStream): Terminal {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(0);
    throw error;
  });
  const isTty = stream.isTTY === true;
  return terminalOn((text) => void stream.write(text), {
    isTty,
    env: process.env,
    size: () => (isTty ? { columns: stream.columns, rows: stream.rows } : {}),
  });
}

function timeOf(epoch: string | undefined): Date | undefined {
  return epoch !== undefined && /^\d{1,11}$/.test(epoch) ? new Date(Number(epoch) * 1000) : undefined;
}

/** package.json is beside src in a checkout and beside dist in the package. */
function packageVersion(): string {
  const file = new URL("../../package.json", import.meta.url);
  return (JSON.parse(readFileSync(file, "utf8")) as { readonly version: string }).version;
}
