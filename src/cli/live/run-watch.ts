import type { StateChange } from "../../view/change.ts";
import { CannotRun, type ExitCode, type Host } from "../foundation/command.ts";
import { changeLine, isTrouble } from "../run/change-lines.ts";
import { AdminClient, waitUnlessAborted } from "./admin-client.ts";
import { EventReader, type ServerEvent } from "./event-reader.ts";

export interface WatchOptions {
  readonly admin: string;
  readonly json: boolean;
  /** Also what the admin server has kept of earlier changes. */
  readonly earlier: boolean;
}

const AGAIN_MS = 1_000;

export async function runWatch(options: WatchOptions, host: Host): Promise<ExitCode> {
  const client = new AdminClient(options.admin, host.signal);
  let last = options.earlier ? "0" : undefined;
  let isFirst = true;
  while (!host.signal.aborted) {
    try {
      const reader = new EventReader();
      const body = await client.events(last);
      if (!isFirst) host.err.line("the admin server is back");
      isFirst = false;
      for await (const chunk of body) {
        for (const event of reader.read(chunk)) {
          last = event.id ?? last;
          show(event, options, host);
        }
      }
    } catch (error) {
      if (host.signal.aborted) break;
      // Nobody is there at all: say so at once.
      if (isFirst && error instanceof CannotRun) throw error;
    }
    if (host.signal.aborted) break;
    host.err.line("the admin server has gone; waiting for it");
    await waitUnlessAborted(AGAIN_MS, host.signal);
    isFirst = false;
  }
  return 0;
}

function show({ type, data }: ServerEvent, { json }: WatchOptions, { out }: Host): void {
  if (type !== "change") return;
  if (json) {
    out.line(data);
    return;
  }
  const change = JSON.parse(data) as StateChange & { readonly at: string };
  const line = changeLine(change);
  const time = out.style("dim", change.at.slice(11, 19));
  out.line(`${time} ${isTrouble(change) ? out.style("red", line) : line}`);
}
