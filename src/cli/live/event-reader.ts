/** Server-sent events, as the admin server writes them: one line of data each. */

export interface ServerEvent {
  readonly id: string | undefined;
  readonly type: string;
  readonly data: string;
}

/** No event of the admin server is as long; whatever sends more is none. */
const LONGEST_EVENT = 1024 * 1024;

export class EventReader {
  readonly #decoder = new TextDecoder();
  #rest = "";

  /** The events that a piece of the stream completes. */
  read(piece: Uint8Array): readonly ServerEvent[] {
    const blocks = (this.#rest + this.#decoder.decode(piece, { stream: true })).split("\n\n");
    this.#rest = blocks.pop() ?? "";
    if (this.#rest.length > LONGEST_EVENT) throw new Error("the stream is not one of events");
    return blocks.flatMap((block) => {
      const field = (name: string): string | undefined =>
        block
          .split("\n")
          .find((line) => line.startsWith(`${name}: `))
          ?.slice(name.length + 2);
      const data = field("data");
      return data === undefined ? [] : [{ id: field("id"), type: field("event") ?? "message", data }];
    });
  }
}
