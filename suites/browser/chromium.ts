/**
 * A real Chromium, driven over its DevTools protocol:
 * https://chromedevtools.github.io/devtools-protocol/.
 */

import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { endGroup, launch, until } from "../program.ts";
import { SuiteFailure } from "../suite.ts";

export interface Browser {
  open(url: string): Promise<Page>;
  end(): Promise<void>;
}

export interface Page {
  /** The value of an expression; promises are awaited. */
  evaluate(expression: string): Promise<unknown>;
  /** Waits until an expression is true, and says what the page had to say where it never is. */
  waitFor(expression: string, seconds: number): Promise<void>;
  /** A command of the DevTools protocol, such as a key press or a screenshot. */
  command(method: string, parameters: object): Promise<unknown>;
  close(): Promise<void>;
}

/**
 * Names of `suites.test` are this machine, and its certificates are accepted whoever has signed
 * them.
 */
const FLAGS: readonly string[] = [
  "--headless=new",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-dev-shm-usage",
  "--no-first-run",
  "--ignore-certificate-errors",
  "--host-resolver-rules=MAP *.suites.test 127.0.0.1",
  "--remote-debugging-port=0",
];

export async function startChromium(command: string, folder: string): Promise<Browser> {
  mkdirSync(folder, { recursive: true });
  const log = join(folder, "chromium.log");
  const child = launch({ command, args: [...FLAGS, `--user-data-dir=${folder}`, "about:blank"] }, log);
  const portFile = join(folder, "DevToolsActivePort");
  const failed = (): boolean => child.exitCode !== null;
  try {
    const written = async (): Promise<boolean> =>
      existsSync(portFile) && readFileSync(portFile, "utf8").includes("\n");
    await until(written, { what: "Chromium", seconds: 120, failed, log });
    const [port = "", path = ""] = readFileSync(portFile, "utf8").split("\n");
    const connection = await Connection.open(`ws://127.0.0.1:${port}${path}`);
    return {
      open: (url) => openPage(connection, url),
      async end() {
        connection.close();
        await endGroup(child);
      },
    };
  } catch (error) {
    await endGroup(child);
    throw error;
  }
}

/** Keeps what every WebSocket of the page does, before any script of the page runs. */
const WATCH_SOCKETS = `
  window.sockets = [];
  window.WebSocket = class extends WebSocket {
    constructor(...args) {
      super(...args);
      const seen = { host: new URL(this.url).host, opened: false, messages: 0, closed: undefined };
      window.sockets.push(seen);
      this.addEventListener("open", () => { seen.opened = true; });
      this.addEventListener("message", () => { seen.messages += 1; });
      this.addEventListener("close", (event) => { seen.closed = event.code; });
    }
  };`;

async function openPage(connection: Connection, url: string): Promise<Page> {
  const context = await connection.call("Target.createBrowserContext", {});
  const { browserContextId } = context as { readonly browserContextId: string };
  const target = await connection.call("Target.createTarget", { url: "about:blank", browserContextId });
  const { targetId } = target as { readonly targetId: string };
  const attached = await connection.call("Target.attachToTarget", { targetId, flatten: true });
  const { sessionId } = attached as { readonly sessionId: string };
  const call = (method: string, parameters: object): Promise<unknown> =>
    connection.call(method, parameters, sessionId);
  await call("Page.enable", {});
  await call("Page.addScriptToEvaluateOnNewDocument", { source: WATCH_SOCKETS });
  const navigated = (await call("Page.navigate", { url })) as { readonly errorText?: string };
  if (navigated.errorText !== undefined) throw new SuiteFailure(`${url}: ${navigated.errorText}`);
  const evaluate = (expression: string): Promise<unknown> => evaluateWith(call, expression);
  return {
    evaluate,
    waitFor: (expression, seconds) => waitFor(evaluate, expression, seconds),
    command: call,
    close: async () => void (await connection.call("Target.disposeBrowserContext", { browserContextId })),
  };
}

type Call = (method: string, parameters: object) => Promise<unknown>;

interface Evaluated {
  readonly result: { readonly value?: unknown };
  readonly exceptionDetails?: {
    readonly text: string;
    readonly exception?: { readonly description?: string };
  };
}

async function evaluateWith(call: Call, expression: string): Promise<unknown> {
  const found = await call("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
  const { result, exceptionDetails } = found as Evaluated;
  if (exceptionDetails === undefined) return result.value;
  throw new SuiteFailure(exceptionDetails.exception?.description ?? exceptionDetails.text);
}

async function waitFor(
  evaluate: (expression: string) => Promise<unknown>,
  expression: string,
  seconds: number,
): Promise<void> {
  const end = Date.now() + seconds * 1000;
  // A page that is being replaced cannot be asked for a moment.
  const holds = (): Promise<boolean> => evaluate(`Boolean(${expression})`).then(Boolean, () => false);
  while (!(await holds())) {
    if (Date.now() > end) {
      const state =
        "JSON.stringify({ sockets: window.sockets, text: document.body?.innerText.slice(0, 120) })";
      const shown = await evaluate(state).catch((error: Error) => error.message);
      throw new SuiteFailure(`waited ${seconds} s for ${expression}; the page has ${shown}`);
    }
    await delay(200);
  }
}

interface Answer {
  readonly id?: number;
  readonly result?: unknown;
  readonly error?: { readonly message: string };
}

class Connection {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  #last = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener("message", ({ data }) => {
      const answer = JSON.parse(String(data)) as Answer;
      this.#waiting.get(answer.id ?? 0)?.(answer);
    });
    socket.addEventListener("close", () => {
      for (const settle of this.#waiting.values()) settle({ error: { message: "Chromium has ended" } });
    });
  }

  static open(url: string): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const socket = new WebSocket(url);
      socket.addEventListener("open", () => resolve(new Connection(socket)));
      socket.addEventListener("error", () => reject(new SuiteFailure("Chromium's DevTools do not answer")));
    });
  }

  call(method: string, params: object, sessionId?: string): Promise<unknown> {
    this.#last += 1;
    const id = this.#last;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, ({ result, error }) => {
        this.#waiting.delete(id);
        if (error === undefined) resolve(result);
        else reject(new SuiteFailure(`${method}: ${error.message}`));
      });
      this.#socket.send(
        JSON.stringify({ id, method, params, ...(sessionId === undefined ? {} : { sessionId }) }),
      );
    });
  }

  close(): void {
    this.#socket.close();
  }
}
