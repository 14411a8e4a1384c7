import type { IncomingMessage, ServerResponse } from "node:http";

/** One path of the admin server; the router and the reference page are made from it. */
export interface Endpoint {
  readonly path: string;
  readonly summary: string;
  readonly parameters?: Readonly<Record<string, string>>;
  /** What comes back, for the reference page. */
  readonly answer: string;
  /** Undefined: the handler has written the response itself. */
  handle(query: URLSearchParams, exchange: Exchange): Answer | undefined;
}

export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

export interface Answer {
  readonly status: number;
  readonly type: "application/json" | "text/plain" | "metrics";
  readonly body: unknown;
}

export function json(body: unknown, status = 200): Answer {
  return { status, type: "application/json", body };
}

export function problem(status: number, message: string): Answer {
  return json({ error: message }, status);
}
