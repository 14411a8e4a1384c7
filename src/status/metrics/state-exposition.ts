/** Answers scrapes of the state of objects. Between scrapes it keeps and follows nothing. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { type StateSnapshot, type StateView, takeSnapshot } from "./state-snapshot.ts";
import { stateText } from "./state-text.ts";

const NOTHING: StateSnapshot = { objects: new Map(), omitted: new Map() };

/** A reader that is slow keeps the state of its moment in memory. */
const MOST_AT_ONCE = 4;
const MOST_MS = 30_000;

export class StateExposition {
  readonly #view: StateView;
  readonly #isShown: () => boolean;
  #running = 0;

  /**
   * `isShown`: of several replicas one answers with samples, since sums over two copies would be
   * wrong. It is the one that writes the statuses.
   */
  constructor(view: StateView, isShown: () => boolean = () => true) {
    this.#view = view;
    this.#isShown = isShown;
  }

  /** Never rejects: a scrape must not end the process. */
  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.#running >= MOST_AT_ONCE) return void response.writeHead(503, { "retry-after": "5" }).end();
    this.#running++;
    try {
      const snapshot = this.#isShown() ? takeSnapshot(this.#view) : NOTHING;
      await send(snapshot, { request, response });
    } catch {
      // Whoever asked has gone, or was too slow: then the connection is closed already.
      if (!response.headersSent) response.writeHead(500).end();
    } finally {
      this.#running--;
    }
  }
}

async function send(
  snapshot: StateSnapshot,
  { request, response }: { readonly request: IncomingMessage; readonly response: ServerResponse },
): Promise<void> {
  const zipped = acceptsGzip(request);
  response.writeHead(200, {
    "content-type": "text/plain; version=0.0.4; charset=utf-8",
    "cache-control": "no-store",
    vary: "accept-encoding",
    ...(zipped ? { "content-encoding": "gzip" } : {}),
  });
  if (request.method === "HEAD") return void response.end();
  const text = Readable.from(stateText(snapshot));
  const signal = AbortSignal.timeout(MOST_MS);
  // Names repeat: the quickest level leaves a small part of the bytes, in a thread of its own.
  if (zipped) await pipeline(text, createGzip({ level: 1 }), response, { signal });
  else await pipeline(text, response, { signal });
}

function acceptsGzip({ headers }: IncomingMessage): boolean {
  return /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?(?:,|$))/.test(String(headers["accept-encoding"] ?? ""));
}
