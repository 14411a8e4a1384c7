import type { IncomingMessage, ServerResponse } from "node:http";

/** One path of the admin server; the router and the reference page are made from it. */
export interface AdminEndpoint {
  readonly path: string;
  readonly summary: string;
  readonly parameters?: Readonly<Record<string, string>>;
  /** What comes back, for the reference page. */
  readonly answer: string;
  /** Undefined: the handler has written the response itself. */
  handle(query: URLSearchParams, exchange: AdminExchange): AdminAnswer | undefined;
}

export interface AdminExchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

export interface AdminAnswer {
  readonly status: number;
  readonly type: "application/json" | "text/plain" | "metrics" | "file";
  readonly body: unknown;
}

/** Text that is sent as it is. */
export interface FileBody {
  readonly contentType: string;
  readonly text: string;
}

export function file(body: FileBody): AdminAnswer {
  return { status: 200, type: "file", body };
}

export function json(body: unknown, status = 200): AdminAnswer {
  return { status, type: "application/json", body };
}

export function problem(status: number, message: string): AdminAnswer {
  return json({ error: message }, status);
}
