/**
 * Many TLS handshakes that get no further than the server's first answer, each for another name:
 * what a flood of made-up names looks like. It comes from a thread of its own, since the one of the
 * test has the server of Envoy to run.
 */

import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { connect as connectTls } from "node:tls";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";

export interface FloodOptions {
  readonly port: number;
  /** `{}` stands for a number of eight digits. */
  readonly pattern: string;
  readonly from: number;
  readonly count: number;
  /** Handshakes under way at once. */
  readonly width: number;
  /** Clients that have no answer by then leave. */
  readonly giveUpMs?: number;
}

/** How the server answered. */
export interface FloodResult {
  readonly served: number;
  readonly refused: number;
  readonly left: number;
}

const DIGITS = 8;
const HANDSHAKE = 0x16;

export async function flood(options: FloodOptions): Promise<FloodResult> {
  const worker = new Worker(new URL(import.meta.url), { workerData: options });
  const [result] = (await once(worker, "message")) as [FloodResult];
  await worker.terminate();
  return result;
}

// Test runners have threads of their own.
if (!isMainThread && typeof workerData?.pattern === "string") parentPort?.postMessage(await send(workerData));

async function send({ port, pattern, from, count, width, giveUpMs }: FloodOptions): Promise<FloodResult> {
  const named = (index: number): string => pattern.replace("{}", String(index).padStart(DIGITS, "0"));
  const sample = await clientHello(named(0));
  const at = sample.indexOf(named(0));
  const answers = { served: 0, refused: 0, left: 0 };
  let next = from;
  await Promise.all(
    Array.from({ length: width }, async () => {
      while (next < from + count) {
        const hello = Buffer.from(sample);
        hello.write(named(next++), at, "latin1");
        answers[await greet(port, hello, giveUpMs)]++;
      }
    }),
  );
  return answers;
}

function greet(port: number, hello: Buffer, giveUpMs: number | undefined): Promise<keyof FloodResult> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1" }, () => socket.write(hello));
    socket.once("data", ([type]) => {
      resolve(type === HANDSHAKE ? "served" : "refused");
      socket.resetAndDestroy();
    });
    socket.on("error", () => {});
    const leave = (): void => {
      resolve("left");
      socket.resetAndDestroy();
    };
    const timer = giveUpMs === undefined ? undefined : setTimeout(leave, giveUpMs);
    socket.once("close", () => {
      clearTimeout(timer);
      resolve("refused");
    });
  });
}

/**
 * What a client of this machine says first; the name can be replaced by another one of the same
 * length.
 */
async function clientHello(servername: string): Promise<Buffer> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const heard = once(server, "connection").then(([socket]) => once(socket, "data"));
  const client = connectTls({
    port: (server.address() as AddressInfo).port,
    host: "127.0.0.1",
    servername,
    ALPNProtocols: ["http/1.1"],
  });
  client.on("error", () => {});
  const [hello] = (await heard) as [Buffer];
  client.destroy();
  server.close();
  return hello;
}
