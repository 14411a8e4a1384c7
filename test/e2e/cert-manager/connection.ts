/**
 * Connections that are in use while a certificate changes, from inside the cluster's network.
 *
 *   node test/e2e/cert-manager/connection.ts ADDRESS HOSTNAME
 *
 * Keeps one HTTP/1.1 and one HTTP/2 connection busy, and makes a new one every turn, until its
 * standard input ends or a minute has passed. Prints one line of JSON then: the serial numbers of
 * the certificates each of them met, in the order of their first appearance, how many requests were
 * answered, and what failed.
 */

import { connect } from "node:http2";
import { Agent, request } from "node:https";
import type { TLSSocket } from "node:tls";

const [host = "", servername = ""] = process.argv.slice(2);
// Who issued is told by other means; here it matters only which certificate is met.
const target = { host, port: 443, servername, rejectUnauthorized: false } as const;
const PAUSE_MS = 50;
const end = Date.now() + 300_000;
/**
 * How many answers each way of connecting has before it is said that they all work, and after
 * standard input has ended.
 */
const ENOUGH = 6;
let stopped = false;
process.stdin.on("end", () => {
  stopped = true;
});
process.stdin.resume();

interface Seen {
  readonly serials: string[];
  readonly failures: string[];
  answers: number;
  connections: number;
}

function nobody(): Seen {
  return { serials: [], failures: [], answers: 0, connections: 0 };
}

function met(seen: Seen, socket: TLSSocket): void {
  const { serialNumber } = socket.getPeerCertificate();
  if (!seen.serials.includes(serialNumber)) seen.serials.push(serialNumber);
}

function overHttp1(seen: Seen, agent: Agent | false): Promise<void> {
  return new Promise((resolve, reject) => {
    const options = { ...target, agent, headers: { host: servername } };
    const outgoing = request(options, (answer) => {
      if (answer.statusCode !== 200) reject(new Error(`status ${answer.statusCode}`));
      met(seen, answer.socket as TLSSocket);
      if (!outgoing.reusedSocket) seen.connections++;
      answer.resume().on("end", resolve).on("error", reject);
    });
    outgoing.on("error", reject).end();
  });
}

const session = connect(`https://${servername}`, { ...target });

function overHttp2(seen: Seen): Promise<void> {
  return new Promise((resolve, reject) => {
    const stream = session.request({ ":authority": servername, ":path": "/" });
    stream.on("response", ({ ":status": status }) => {
      if (status !== 200) reject(new Error(`status ${status}`));
      met(seen, session.socket as TLSSocket);
    });
    stream.resume().on("end", resolve).on("error", reject).end();
  });
}

const all = [nobody(), nobody(), nobody()] as const;
const [h1, h2, fresh] = all;
let isSaid = false;

async function keepBusy(seen: Seen, once: () => Promise<void>): Promise<Seen> {
  for (let left = ENOUGH; left > 0 && Date.now() < end; left -= stopped ? 1 : 0) {
    try {
      await once();
      seen.answers++;
      if (!isSaid && all.every(({ answers }) => answers >= ENOUGH)) {
        isSaid = true;
        console.log("busy");
      }
    } catch (error) {
      seen.failures.push((error as Error).message);
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  return seen;
}

session.on("error", () => {});
const kept = new Agent({ keepAlive: true, maxSockets: 1 });
await Promise.all([
  keepBusy(h1, () => overHttp1(h1, kept)),
  keepBusy(h2, () => overHttp2(h2)),
  keepBusy(fresh, () => overHttp1(fresh, false)),
]);
console.log(JSON.stringify({ h1, h2, fresh }));
process.exit(0);
