/** One line per request: JSON, or the combined format with what a gateway adds. */
import { createWriteStream } from "node:fs";
import type { Writable } from "node:stream";
import type { RequestRecord } from "../../dataplanes/request-record.ts";
import type { LogFormat } from "./logger.ts";

export interface AccessLog {
  write(record: RequestRecord): void;
  close(): Promise<void>;
}

/** A disk that is slower than the traffic loses lines rather than memory. */
const MAX_BUFFERED_BYTES = 16 * 1024 * 1024;

/** `-` is standard output. */
export function openAccessLog(target: string, format: LogFormat, onError: (error: Error) => void): AccessLog {
  const stream: Writable = target === "-" ? process.stdout : createWriteStream(target, { flags: "a" });
  if (target !== "-") stream.on("error", onError);
  const render = format === "json" ? (record: RequestRecord) => JSON.stringify(record) : combinedLine;
  return {
    write: (record) => {
      if (stream.writableLength < MAX_BUFFERED_BYTES) stream.write(`${render(record)}\n`);
    },
    close: () =>
      target === "-" ? Promise.resolve() : new Promise((resolve) => void stream.end(() => resolve())),
  };
}

function combinedLine(record: RequestRecord): string {
  const {
    client,
    time,
    method,
    authority,
    path,
    protocol,
    status,
    bytesSent,
    durationMs,
    route,
    endpoint,
    reason,
  } = record;
  const served = route === undefined ? "-" : `${route.kind}/${route.namespace}/${route.name}#${route.rule}`;
  return [
    client,
    `[${new Date(time).toISOString()}]`,
    quoted(`${method} ${path} ${protocol}`),
    quoted(authority),
    status,
    bytesSent,
    `${durationMs.toFixed(1)}ms`,
    served,
    endpoint ?? "-",
    quoted(reason ?? "-"),
  ].join(" ");
}

/** Clients choose these words: nothing in them may look like a line or a field of ours. */
function quoted(text: string): string {
  return JSON.stringify(text);
}
