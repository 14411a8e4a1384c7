/**
 * Runs in a pod of a tenant, with nothing but Node: tries to get a plan from the controller's
 * stream, and to read what is to be read from other ports. The tries come in the variable TRIES;
 * prints one line of JSON with what became of each.
 */
import { readFileSync } from "node:fs";
import { connect } from "node:http2";
import { connect as connectTcp } from "node:net";

export interface Try {
  readonly name: string;
  /** A plan: which Gateway's, as which pod, with which token (a file, or the token itself). */
  readonly plan?: {
    readonly gateway: string;
    readonly pod: string;
    readonly token?: string;
    readonly tokenFile?: string;
  };
  /** Or just something to GET. */
  readonly url?: string;
  /** Or an address, to see which TCP ports are open there: its body is the list. */
  readonly ports?: string;
}

export interface Outcome {
  readonly name: string;
  /** 0 where nothing answered. */
  readonly status: number;
  readonly body: string;
  /** More than 1 where nothing had answered before. */
  readonly attempts: number;
}

type Answer = Pick<Outcome, "status" | "body">;

/** Long: on a busy machine an answer may take its time, and no answer would say nothing. */
const WAIT_MS = 60_000;
const MOST_ATTEMPTS = 5;
const PAUSE_MS = 2_000;

function plan(stream: string, { gateway, pod, token, tokenFile }: NonNullable<Try["plan"]>) {
  return new Promise<Answer>((resolve) => {
    const outcome = { status: 0, body: "" };
    const session = connect(`https://${stream}`, { rejectUnauthorized: false });
    const end = (): void => {
      session.destroy();
      resolve(outcome);
    };
    setTimeout(end, WAIT_MS).unref();
    session.on("error", end);
    session.on("close", end);
    const bearer = tokenFile === undefined ? token : readFileSync(tokenFile, "utf8").trim();
    const request = session.request({
      ":method": "POST",
      ":path": "/v1/plan",
      ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
    });
    request.on("error", () => {});
    // A plan would not end: what ends is a refusal.
    request.on("end", end);
    request.on("close", end);
    request.on("response", (headers) => {
      outcome.status = Number(headers[":status"]);
    });
    request.on("data", (part: Buffer) => {
      outcome.body += part.toString();
    });
    request.write(`${JSON.stringify({ type: "hello", gateway, pod })}\n`);
    request.write(`${JSON.stringify({ type: "serve", have: {} })}\n`);
  });
}

async function get(url: string): Promise<Answer> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(WAIT_MS) });
    return { status: answer.status, body: await answer.text() };
  } catch {
    return { status: 0, body: "" };
  }
}

const AT_ONCE = 256;

async function openPorts(host: string): Promise<Answer> {
  const open: number[] = [];
  let next = 1;
  const worker = async (): Promise<void> => {
    for (let port = next++; port < 65_536; port = next++) if (await isOpen(host, port)) open.push(port);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return { status: open.length, body: JSON.stringify(open.sort((a, b) => a - b)) };
}

function isOpen(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connectTcp({ host, port, timeout: WAIT_MS });
    const end = (found: boolean): void => {
      socket.destroy();
      resolve(found);
    };
    socket.on("connect", () => end(true));
    socket.on("timeout", () => end(false));
    socket.on("error", () => end(false));
  });
}

/** Tries again where nothing answered. */
async function outcomeOf(each: Try): Promise<Outcome> {
  for (let attempts = 1; ; attempts++) {
    const answer = await attempt(each);
    if (answer.status !== 0 || attempts === MOST_ATTEMPTS) return { name: each.name, ...answer, attempts };
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

async function attempt({ plan: wanted, url, ports }: Try): Promise<Answer> {
  if (wanted !== undefined) return plan(process.env["STREAM"] ?? "", wanted);
  return ports === undefined ? get(url ?? "") : openPorts(ports);
}

const tries = JSON.parse(process.env["TRIES"] ?? "[]") as readonly Try[];
const outcomes: Outcome[] = [];
for (const each of tries) outcomes.push(await outcomeOf(each));
console.log(JSON.stringify(outcomes));
process.exit(0);
