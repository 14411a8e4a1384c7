import { CannotRun, type ExitCode, type Host } from "../foundation/command.ts";
import { linesOf, type Terminal } from "../foundation/terminal.ts";
import { columns } from "../foundation/text-table.ts";
import { AdminClient, waitUnlessAborted } from "./admin-client.ts";
import { type OwnerRate, ownerRates, type RequestTotals } from "./owner-rates.ts";

export interface TopOptions {
  readonly admin: string;
  readonly intervalSeconds: number;
  /** How many tables; 0: until it is told to stop. */
  readonly count: number;
  readonly namespaces: readonly string[];
}

/** Below this width there is room for the owner, its rate and its errors alone. */
const NARROW = 60;
/** The head of the table, and the line of the shell. */
const OTHER_ROWS = 4;

export async function runTop(options: TopOptions, host: Host): Promise<ExitCode> {
  const client = new AdminClient(options.admin, host.signal);
  let before = await read(client, options);
  for (let shown = 0; options.count === 0 || shown < options.count; shown++) {
    await waitUnlessAborted(options.intervalSeconds * 1_000, host.signal);
    if (host.signal.aborted) return 0;
    const now = await read(client, options).catch((error: unknown) => {
      // What was told to stop has asked in vain.
      if (host.signal.aborted) return before;
      throw error;
    });
    host.out.redraw(tableOf(ownerRates(before, now), host.out));
    before = now;
  }
  return 0;
}

async function read(client: AdminClient, { namespaces }: TopOptions): Promise<RequestTotals> {
  const answer = await client.json<Partial<RequestTotals>>("/api/v1/traffic");
  if (!Array.isArray(answer.items)) throw new CannotRun("the admin server tells nothing of traffic");
  const items = (answer.items as RequestTotals["items"]).filter(
    ({ listener }) => namespaces.length === 0 || namespaces.includes(listener.split("/")[1] ?? ""),
  );
  return { at: performance.now(), items };
}

/** As wide and as long as the terminal, or everything where there is none. */
export function tableOf(rates: readonly OwnerRate[], terminal: Terminal): string {
  const { columns: width = Number.POSITIVE_INFINITY, rows = Number.POSITIVE_INFINITY } = terminal.size();
  const isNarrow = width < NARROW;
  const head = isNarrow ? ["REQ/S", "ERR/S", "OWNER"] : ["REQ/S", "ERR/S", "TOTAL", "LISTENERS", "OWNER"];
  const room = Math.max(1, rows - OTHER_ROWS);
  const shown = rates.slice(0, room);
  const body = shown.map((rate) => {
    const errors = rateText(rate.errors);
    const numbers = [rateText(rate.requests), rate.errors > 0 ? terminal.style("red", errors) : errors];
    const more = isNarrow ? [] : [String(rate.total), String(rate.listeners)];
    return [...numbers, ...more, rate.owner];
  });
  const lines = columns([head, ...body]).map((line) => cut(line, width));
  const left = rates.length - shown.length;
  const sum = rates.reduce((total, { requests }) => total + requests, 0);
  const foot = [
    ...(left > 0 ? [`… and ${left} more owners`] : []),
    rates.length === 0 ? "no requests yet" : `${rateText(sum)} requests a second in all`,
  ];
  return linesOf([...lines, ...foot.map((line) => terminal.style("dim", cut(line, width)))]);
}

function rateText(rate: number): string {
  return rate === 0 ? "0" : rate < 10 ? rate.toFixed(1) : String(Math.round(rate));
}

/** The end of a name says more than its beginning, and has no style. */
function cut(line: string, width: number): string {
  const characters = [...line];
  return characters.length <= width ? line : `${characters.slice(0, Math.max(0, width - 1)).join("")}…`;
}
