/**
 * A steady, bounded load from inside the cluster's network: a few clients, each with one request at
 * a time and every second one on a new connection.
 *
 *   node test/e2e/support/load.ts URL HOST SECONDS
 *
 * Prints how many requests have been answered, now and then, a number a line; and one line of JSON
 * when its time is over or its standard input ends: how many requests were sent, how many failed,
 * and why the first ones did.
 */
import { Agent, request } from "node:http";

const [url = "", host = "", seconds = "10"] = process.argv.slice(2);
const CLIENTS = 4;
const PAUSE_MS = 10;
/** A request that a busy machine answers late is not lost. */
const TIMEOUT_MS = 30_000;
const REPORT_EVERY = 20;

const end = Date.now() + Number(seconds) * 1000;
let stopped = false;
process.stdin.on("end", () => {
  stopped = true;
});
process.stdin.resume();

const reasons: string[] = [];
let sent = 0;
let answered = 0;
let failed = 0;

async function client(): Promise<void> {
  const kept = new Agent({ keepAlive: true, maxSockets: 1 });
  for (let turn = 0; !stopped && Date.now() < end; turn++) {
    sent++;
    const problem = await once(turn % 2 === 0 ? kept : undefined);
    if (problem !== undefined) {
      failed++;
      if (reasons.length < 10) reasons.push(`${new Date().toISOString()} ${problem}`);
    }
    if (++answered % REPORT_EVERY === 0) console.log(answered);
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  kept.destroy();
}

/**
 * A keep-alive connection that the server closes between two requests is no lost request: clients
 * try again, and so does this one, once.
 */
async function once(agent: Agent | undefined): Promise<string | undefined> {
  const first = await attempt(agent);
  return first?.onReused ? (await attempt(undefined))?.problem : first?.problem;
}

function attempt(agent: Agent | undefined): Promise<{ problem: string; onReused: boolean } | undefined> {
  return new Promise((resolve) => {
    const outgoing = request(
      url,
      { headers: { host }, agent: agent ?? false, timeout: TIMEOUT_MS },
      (answer) => {
        answer.resume();
        answer.on("end", () =>
          resolve(
            answer.statusCode === 200
              ? undefined
              : { problem: `status ${answer.statusCode}`, onReused: false },
          ),
        );
        answer.on("error", (error) => resolve({ problem: error.message, onReused: false }));
      },
    );
    outgoing.on("timeout", () => outgoing.destroy(new Error("no answer in time")));
    outgoing.on("error", (error) => resolve({ problem: error.message, onReused: outgoing.reusedSocket }));
    outgoing.end();
  });
}

await Promise.all(Array.from({ length: CLIENTS }, client));
console.log(JSON.stringify({ sent, failed, reasons }));
process.exit(0);
