// A client of a Node process's inspector: full collections, figures and heap snapshots of the
// process under test, by no code of its own.

import type { ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: { readonly chunk?: string };
  readonly result?: { readonly result?: { readonly value?: string } };
  readonly error?: { readonly message: string };
}

interface Waiting {
  readonly done: (message: Message) => void;
  readonly fail: (error: Error) => void;
}

export interface HeapFigures {
  /** Bytes in use after a full collection. */
  readonly heap: number;
  readonly external: number;
  readonly arrayBuffers: number;
  /** By V8 itself, outside of the heap. */
  readonly malloced: number;
  /** Sockets, timers and the like. */
  readonly resources: number;
}

const FIGURES = `(() => {
  const { heapUsed, external, arrayBuffers } = process.memoryUsage();
  const { malloced_memory } = process.getBuiltinModule("node:v8").getHeapStatistics();
  const resources = process.getActiveResourcesInfo().length;
  return JSON.stringify({ heap: heapUsed, external, arrayBuffers, malloced: malloced_memory, resources });
})()`;

export class Inspector {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, Waiting>();
  #next = 1;
  #chunks: string[] = [];

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener("message", ({ data }) => this.#take(JSON.parse(String(data)) as Message));
    socket.addEventListener("close", () => {
      for (const { fail } of this.#waiting.values()) fail(new Error("the process under test has gone"));
    });
  }

  /** The process must have been started with --inspect; it says where on its standard error. */
  static async of(child: ChildProcess): Promise<Inspector> {
    const address = await inspectorAddress(child);
    const socket = new WebSocket(address);
    await new Promise<void>((done, fail) => {
      socket.addEventListener("open", () => done());
      socket.addEventListener("error", () => fail(new Error(`no inspector at ${address}`)));
    });
    return new Inspector(socket);
  }

  /** Twice: what finalizers let go of in the first collection goes in the second. */
  async collect(): Promise<HeapFigures> {
    await this.#call("HeapProfiler.collectGarbage");
    await this.#call("HeapProfiler.collectGarbage");
    const { result } = await this.#call("Runtime.evaluate", { expression: FIGURES, returnByValue: true });
    return JSON.parse(result?.result?.value ?? "{}") as HeapFigures;
  }

  async snapshot(): Promise<string> {
    this.#chunks = [];
    await this.#call("HeapProfiler.takeHeapSnapshot", { reportProgress: false });
    const text = this.#chunks.join("");
    this.#chunks = [];
    return text;
  }

  close(): void {
    this.#socket.close();
  }

  #call(method: string, params: object = {}): Promise<Message> {
    const id = this.#next++;
    return new Promise((done, fail) => {
      this.#waiting.set(id, { done, fail });
      this.#socket.send(JSON.stringify({ id, method, params }));
    });
  }

  #take(message: Message): void {
    if (message.method === "HeapProfiler.addHeapSnapshotChunk")
      this.#chunks.push(message.params?.chunk ?? "");
    if (message.id === undefined) return;
    const waiting = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    if (message.error === undefined) waiting?.done(message);
    else waiting?.fail(new Error(message.error.message));
  }
}

async function inspectorAddress(child: ChildProcess): Promise<string> {
  if (child.stderr === null) throw new Error("the process under test has no standard error");
  const lines = createInterface({ input: child.stderr });
  return new Promise((done, fail) => {
    child.once("exit", (code) => fail(new Error(`the process under test ended with ${code}`)));
    lines.on("line", (line) => {
      const [, address] = /Debugger listening on (ws:\S+)/.exec(line) ?? [];
      if (address !== undefined) done(address);
      else if (/error|warn|fatal/i.test(line)) process.stderr.write(`  ${line}\n`);
    });
  });
}
