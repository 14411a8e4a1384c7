/** Reads from the admin server of a running `mergeway run`. */
import { CannotRun, type TextFlag } from "../foundation/command.ts";
import { parseSocketAddress } from "../run/addresses.ts";
import { DEFAULT_ADMIN } from "../run/admin-place.ts";

const ANSWER_MS = 10_000;

export const ADMIN_FLAG: TextFlag & { readonly default: string } = {
  type: "text",
  value: "ADDRESS",
  default: DEFAULT_ADMIN,
  help: "address and port of the admin server of `mergeway run`",
};

export class AdminClient {
  readonly #base: string;
  readonly #signal: AbortSignal;

  constructor(flag: string, signal: AbortSignal) {
    const { address, port } = parseSocketAddress(flag, "--admin");
    this.#base = `http://${address.includes(":") ? `[${address}]` : address}:${port}`;
    this.#signal = signal;
  }

  async json<T>(path: string): Promise<T> {
    const limit = AbortSignal.any([this.#signal, AbortSignal.timeout(ANSWER_MS)]);
    return (await (await this.#get(path, {}, limit)).json()) as T;
  }

  /** Lasts until somebody ends it. */
  async events(after: string | undefined): Promise<AsyncIterable<Uint8Array>> {
    const headers: Record<string, string> = after === undefined ? {} : { "last-event-id": after };
    const { body } = await this.#get("/api/v1/events", headers, this.#signal);
    if (body === null) throw this.#unreachable("it sends nothing");
    return body;
  }

  async #get(path: string, headers: Record<string, string>, signal: AbortSignal): Promise<Response> {
    let response: Response;
    try {
      response = await fetch(`${this.#base}${path}`, { headers, signal });
    } catch (error) {
      throw this.#unreachable(causeOf(error));
    }
    if (!response.ok) throw this.#unreachable(`it answers ${response.status} to ${path}`);
    return response;
  }

  #unreachable(why: string): CannotRun {
    return new CannotRun(
      `there is no admin server at ${this.#base}: ${why}`,
      "start `mergeway run`, or say with --admin where its admin server is",
    );
  }
}

/** fetch hides what went wrong one level below. */
function causeOf(error: unknown): string {
  const { cause, message } = error as Error;
  return cause instanceof Error ? cause.message || cause.name : message;
}

export function waitUnlessAborted(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done, { once: true });
    if (signal.aborted) done();
  });
}
