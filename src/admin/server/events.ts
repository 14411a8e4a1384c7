/**
 * Changes as server-sent events. A client that reconnects with Last-Event-ID gets the events that
 * it missed, up to the number kept here.
 */
import type { ServerResponse } from "node:http";
import type { StateChange } from "../../view/change.ts";
import type { AdminState } from "../admin-state.ts";
import { type AdminEndpoint, problem } from "./endpoint.ts";

const KEPT_EVENTS = 1_000;
const MAX_CLIENTS = 64;
/** A client that lets this much pile up is disconnected. */
const MAX_BUFFERED_BYTES = 1024 * 1024;
const HEARTBEAT_MS = 15_000;

export class EventStream {
  readonly #kept: { readonly id: number; readonly text: string }[] = [];
  readonly #clients: Set<ServerResponse> = new Set();
  readonly #heartbeat: NodeJS.Timeout;
  readonly #unsubscribe: () => void;
  #lastId = 0;

  constructor(admin: AdminState) {
    this.#unsubscribe = admin.onChanges((changes) => {
      for (const change of changes) this.#publish(change);
    });
    this.#heartbeat = setInterval(() => this.#send(": still here\n\n"), HEARTBEAT_MS);
    this.#heartbeat.unref();
  }

  get endpoint(): AdminEndpoint {
    return {
      path: "/api/v1/events",
      summary:
        "Changes of the merged state as server-sent events, one `change` each; `Last-Event-ID` resumes.",
      parameters: {
        after: `also the kept events after this id, of the last ${KEPT_EVENTS}; 0 for all of them`,
      },
      answer:
        "`{type: listener|route|host|certificate|backend, at, …}`: what it is now and since when, and for listeners what it was before",
      handle: (query, { request, response }) => {
        if (this.#clients.size >= MAX_CLIENTS)
          return problem(503, `at most ${MAX_CLIENTS} clients may follow the events`);
        response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
        if (request.method === "HEAD") {
          response.end();
          return undefined;
        }
        response.write(": changes follow\n\n");
        const seen = Number(request.headers["last-event-id"] ?? query.get("after") ?? this.#lastId);
        // An id that is still to come is of a process before this one: everything was missed.
        const from = seen > this.#lastId ? 0 : seen;
        for (const { id, text } of this.#kept) if (id > from) response.write(text);
        this.#clients.add(response);
        response.on("close", () => this.#clients.delete(response));
        return undefined;
      },
    };
  }

  close(): void {
    this.#unsubscribe();
    clearInterval(this.#heartbeat);
    for (const client of this.#clients) client.end();
  }

  #publish(change: StateChange): void {
    const id = ++this.#lastId;
    const at = new Date().toISOString();
    const text = `id: ${id}\nevent: change\ndata: ${JSON.stringify({ ...change, at })}\n\n`;
    this.#kept.push({ id, text });
    if (this.#kept.length > KEPT_EVENTS) this.#kept.shift();
    this.#send(text);
  }

  #send(text: string): void {
    for (const client of this.#clients) {
      if (client.writableLength > MAX_BUFFERED_BYTES) client.destroy();
      else client.write(text);
    }
  }
}
