import {
  type AnswerSink,
  type ReceivedAnswer,
  ResponseParser,
} from "../../../../src/dataplanes/embedded/http1/response-parser.ts";
import type { HeaderFields } from "../../../../src/dataplanes/embedded/message/header-fields.ts";
import { HEADER_BYTES } from "./read-requests.ts";

export interface ReadAnswer {
  readonly status: number;
  readonly fields: readonly string[];
  body: string;
  trailers: readonly string[];
  complete: boolean;
}

export interface AnswerReading {
  readonly answer: ReadAnswer | undefined;
  readonly keepAlive: boolean;
  readonly switched: boolean;
  readonly malformed: boolean;
  /** Bytes behind the end of the answer. */
  readonly excess: number;
}

/** What the parser makes of a backend that sends these pieces and then ends the connection. */
export function readAnswer(
  pieces: readonly Buffer[],
  method: string,
  mayBeSwitch: boolean = false,
): AnswerReading {
  let answer: ReadAnswer | undefined;
  let keepAlive = false;
  let switched = false;
  const sink: AnswerSink = {
    // llhttp, to which this is compared, tells nothing of interim answers either.
    onInterim() {},
    onAnswer(received: ReceivedAnswer) {
      keepAlive = received.keepAlive;
      answer = {
        status: received.status,
        fields: [...received.headers.flat],
        body: "",
        trailers: [],
        complete: false,
      };
    },
    onSwitch() {
      switched = true;
    },
    onBody(piece: Buffer) {
      if (answer !== undefined) answer.body += piece.toString("latin1");
    },
    onEnd(trailers: HeaderFields | undefined) {
      if (answer === undefined) return;
      answer.trailers = [...(trailers?.flat ?? [])];
      answer.complete = true;
    },
  };
  const parser = new ResponseParser(sink, HEADER_BYTES);
  parser.expect(method, mayBeSwitch);
  let malformed = false;
  let excess = 0;
  for (const piece of pieces) {
    const at: number = malformed ? piece.length : parser.read(piece, 0);
    malformed ||= at < 0;
    if (!malformed) excess += piece.length - at;
  }
  if (!malformed) parser.finish();
  return { answer, keepAlive, switched, malformed, excess };
}
