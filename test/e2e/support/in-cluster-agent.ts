/**
 * Makes HTTP requests from inside a cluster's network for a test outside of it: one line of JSON
 * for each order on standard input, one for each answer on standard output. in-cluster-client.ts
 * starts it.
 */
import { readFileSync } from "node:fs";
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { createInterface } from "node:readline";
import type { Answer, FloodAnswer, Order, Times, WebRequest } from "./in-cluster-client.ts";

const SOCKETS = 64;
const TIMEOUT_MS = 30_000;
const RETRY_MS = 1_000;
const [authority = ""] = process.argv.slice(2);
const https = new HttpsAgent({ keepAlive: true, maxSockets: SOCKETS, ca: readFileSync(authority) });
const http = new HttpAgent({ keepAlive: true, maxSockets: SOCKETS });

function call({ url, method = "GET", headers = {}, body, servername }: WebRequest): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const secure = url.startsWith("https:");
    const own = servername === undefined ? { agent: https } : { rejectUnauthorized: false, servername };
    const options = { method, headers, timeout: TIMEOUT_MS, ...(secure ? own : { agent: http }) };
    const take = (response: IncomingMessage): void => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (part: string) => {
        text += part;
      });
      response.on("end", () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }),
      );
      response.on("error", reject);
    };
    const outgoing = secure ? httpsRequest(url, options, take) : httpRequest(url, options, take);
    outgoing.on("timeout", () => outgoing.destroy(new Error("no answer in time")));
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

/** The status of the answer; of the last one where the server was too busy for the others. */
async function statusOf(request: WebRequest, retries: number): Promise<string> {
  let mayBeDone = false;
  for (let left = retries; ; left--) {
    const status = await call(request).then(
      (answer) => String(answer.status),
      () => "none",
    );
    // The object exists because of an earlier request whose answer was lost.
    if (mayBeDone && request.method === "POST" && status === "409") return "201";
    if (left <= 0 || !/^(none|429|5..)$/.test(status)) return status;
    mayBeDone ||= status !== "429";
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

/** So many requests, some at a time, `{{n}}` in each replaced by its number. */
async function flood({ count, parallel, retries = 0 }: Times, request: WebRequest) {
  const statuses: Record<string, number> = {};
  const began = performance.now();
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let n = next++; n < count; n = next++) {
      const numbered = (text: string): string => text.replaceAll("{{n}}", String(n));
      const { url, body } = request;
      const one = { ...request, url: numbered(url), ...(body === undefined ? {} : { body: numbered(body) }) };
      const status = await statusOf(one, retries);
      statuses[status] = (statuses[status] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: parallel }, worker));
  return { statuses, seconds: (performance.now() - began) / 1000 } satisfies FloodAnswer;
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, request, times } = JSON.parse(line) as Order;
  const work: Promise<Answer | FloodAnswer> = times === undefined ? call(request) : flood(times, request);
  void work.then(
    (answer) => console.log(JSON.stringify({ id, answer })),
    (error: unknown) => console.log(JSON.stringify({ id, error: String(error) })),
  );
}
process.exit(0);
