/**
 * Runs in a pod of a tenant, with nothing but Node: tries to get a plan from the controller's stream, and to read what is to be read from other ports. The tries come in the
 * variable TRIES; prints one line of JSON with what became of each.
 */
import { readFileSync } from "node:fs";
import { connect } from "node:http2";

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
}

export interface Outcome {
  readonly name: string;
  /** 0 where nothing answered. */
  readonly status: number;
  readonly body: string;
}

const WAIT_MS = 8_000;

function plan(stream: string, { gateway, pod, token, tokenFile }: NonNullable<Try["plan"]>) {
  return new Promise<Omit<Outcome, "name">>((resolve) => {
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

async function get(url: string): Promise<Omit<Outcome, "name">> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(WAIT_MS) });
    return { status: answer.status, body: await answer.text() };
  } catch {
    return { status: 0, body: "" };
  }
}

const tries = JSON.parse(process.env["TRIES"] ?? "[]") as readonly Try[];
const outcomes: Outcome[] = [];
for (const { name, plan: wanted, url } of tries) {
  const outcome = wanted ? await plan(process.env["STREAM"] ?? "", wanted) : await get(url ?? "");
  outcomes.push({ name, ...outcome });
}
console.log(JSON.stringify(outcomes));
process.exit(0);
