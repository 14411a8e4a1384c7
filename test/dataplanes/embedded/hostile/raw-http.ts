/** HTTP/1.1 as bytes: sends what no client library would, and reads answers without mercy. */

import type { Socket } from "node:net";
import type { Sockets } from "../../support/sockets.ts";

export interface RawAnswer {
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string;
  /** Whether the body was whole by its own framing. */
  readonly complete: boolean;
}

/** Everything that comes back until the connection closes. A reset counts as an end. */
export async function talk(
  sockets: Sockets,
  port: number,
  bytes: string | Buffer,
): Promise<readonly RawAnswer[]> {
  const socket = await sockets.connect(port);
  socket.write(typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes);
  return parseAnswers(await received(socket));
}

export function received(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
    });
    socket.on("end", () => socket.end());
    socket.on("close", () => resolve(text));
  });
}

export function parseAnswers(text: string): readonly RawAnswer[] {
  const answers: RawAnswer[] = [];
  let rest = text;
  while (rest !== "") {
    const end = rest.indexOf("\r\n\r\n");
    const line = /^HTTP\/1\.[01] (\d{3})/.exec(rest);
    if (end < 0 || line === null) throw new Error(`not an answer: ${JSON.stringify(rest.slice(0, 200))}`);
    const headers = rest
      .slice(0, end)
      .split("\r\n")
      .slice(1)
      .map(
        (field) => [field.split(":", 1)[0]?.toLowerCase() ?? "", field.replace(/^[^:]*:\s*/, "")] as const,
      );
    const value = (name: string): string | undefined => headers.find(([known]) => known === name)?.[1];
    const status = Number(line[1]);
    rest = rest.slice(end + 4);
    if (status < 200) continue;
    const { body, complete, left } = bodyOf(rest, value("content-length"), value("transfer-encoding"));
    rest = left;
    answers.push({ status, headers, body, complete });
  }
  return answers;
}

function bodyOf(
  rest: string,
  length: string | undefined,
  coding: string | undefined,
): { readonly body: string; readonly complete: boolean; readonly left: string } {
  if (coding === "chunked") {
    let body = "";
    let at = 0;
    for (;;) {
      const line = /^([0-9a-f]+)\r\n/i.exec(rest.slice(at, at + 20));
      if (line === null) return { body, complete: false, left: "" };
      const size = Number.parseInt(line[1] as string, 16);
      at += line[0].length;
      if (size === 0) {
        const end = rest.indexOf("\r\n\r\n", at - 2);
        return end < 0
          ? { body, complete: false, left: "" }
          : { body, complete: true, left: rest.slice(end + 4) };
      }
      body += rest.slice(at, at + size);
      if (rest.length < at + size + 2) return { body, complete: false, left: "" };
      at += size + 2;
    }
  }
  if (length === undefined) return { body: rest, complete: true, left: "" };
  const size = Number(length);
  return { body: rest.slice(0, size), complete: rest.length >= size, left: rest.slice(size) };
}
