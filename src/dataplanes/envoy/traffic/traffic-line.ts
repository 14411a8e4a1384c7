/**
 * The line that Envoy writes for each request so that it can be counted: five numbers, and then
 * what the request has in common with many others. That part is looked up as a whole, so a line
 * costs a few numbers and one look into a map.
 */

import type { RequestRecord } from "../../request-record.ts";
import type { CountedRequest, HandshakeResult } from "../../traffic/traffic-numbers.ts";
import type { TrafficTally } from "../../traffic/traffic-tally.ts";
import { REFUSAL_REASON } from "../messages/authorization.ts";
import { fileTextLog } from "../messages/file-log.ts";
import type * as proto from "../wire/proto.ts";
import type { Message } from "../wire/protobuf.ts";
import { readAccessLog, readOutcome } from "./access-log.ts";

const FORMAT: string = [
  "%COMMON_DURATION(DS_RX_BEG:DS_TX_END:us)%",
  "%DURATION%",
  "%BYTES_RECEIVED%",
  "%BYTES_SENT%",
  "%UPSTREAM_REQUEST_ATTEMPT_COUNT%",
  [
    "%RESPONSE_CODE%",
    "%RESPONSE_FLAGS%",
    "%RESPONSE_CODE_DETAILS%",
    "%UPSTREAM_CLUSTER_RAW%",
    "%ROUTE_NAME%",
    `${REFUSAL_REASON}\n`,
  ].join("\t"),
].join(" ");

/** Of a connection to a port with TLS, when it is over: why its handshake failed, if it did. */
const HANDSHAKE_FORMAT = "T%RESPONSE_FLAGS%\t%DOWNSTREAM_TRANSPORT_FAILURE_REASON%\n";
/** Most connections. */
const NO_FAILURE = "T-\t-";

/** Independent of listeners, hosts and rules, as everything in a port is. */
export function trafficLog(path: string): Message<proto.AccessLog> {
  return fileTextLog(path, FORMAT);
}

export function handshakeLog(path: string): Message<proto.AccessLog> {
  return fileTextLog(path, HANDSHAKE_FORMAT);
}

/** Details may quote what a backend said: the number of outcomes is limited. */
const MOST_OUTCOMES = 20_000;
const NUMBERS = 5;
const NEWLINE = 10;
const SPACE = 32;
const MINUS = 45;
const ZERO = 48;
const LETTER_T = 84;
const BRACE = 123;

/** For whom requests are recorded. */
export interface RecordReader {
  readonly onRecord: (record: RequestRecord) => void;
  /** Whether there is no other line for the same request. */
  readonly areCounted: boolean;
  /** Requests whose lines were lost, if they are counted. */
  readonly onMissing: (requests: number) => void;
}

type Outcome = Pick<CountedRequest, "listener" | "route" | "backend" | "reason" | "status">;

/** Counts the lines of one Gateway's Envoys. */
export class TrafficLines {
  readonly #gateway: string;
  readonly #tally: TrafficTally;
  readonly #records: RecordReader | undefined;
  /** By the text after the numbers. */
  readonly #outcomes: Map<string, Outcome> = new Map();
  readonly #numbers: Float64Array = new Float64Array(NUMBERS);

  constructor(gateway: string, tally: TrafficTally, records?: RecordReader) {
    this.#gateway = gateway;
    this.#tally = tally;
    this.#records = records;
  }

  /**
   * Counts the whole lines of a piece of the log. Returns their bytes, and how many are of
   * requests.
   */
  count(piece: Buffer): { readonly bytes: number; readonly requests: number } {
    let bytes = 0;
    let requests = 0;
    for (let end = piece.indexOf(NEWLINE); end >= 0; end = piece.indexOf(NEWLINE, bytes)) {
      if (piece[bytes] === LETTER_T) this.#countConnection(piece.toString("latin1", bytes, end));
      else if (piece[bytes] === BRACE) requests += this.#readRecord(piece.toString("utf8", bytes, end));
      else {
        this.#countRequest(piece, bytes, end);
        requests++;
      }
      bytes = end + 1;
    }
    return { bytes, requests };
  }

  /** Returns how many requests are counted by it. */
  #readRecord(line: string): number {
    const record = readAccessLog(this.#gateway, line);
    if (record !== undefined) {
      if (this.#records?.areCounted === true) this.#tally.countRequest(record);
      this.#records?.onRecord(record);
    }
    return this.#records?.areCounted === true ? 1 : 0;
  }

  #countConnection(line: string): void {
    if (line === NO_FAILURE) return;
    const [flags = "", reason = ""] = line.slice(1).split("\t");
    this.#tally.countHandshake(handshakeFailure(flags, reason));
  }

  #countRequest(piece: Buffer, start: number, end: number): void {
    const numbers = this.#numbers;
    let at = start;
    for (let index = 0; index < NUMBERS; index++) {
      let value = 0;
      for (; at < end && piece[at] !== SPACE; at++) {
        const byte = piece[at] as number;
        value = byte === MINUS ? Number.NaN : value * 10 + byte - ZERO;
      }
      numbers[index] = value;
      at++;
    }
    const { listener, route, backend, reason, status } = this.#outcome(piece.toString("latin1", at, end));
    const micros = numbers[0] as number;
    this.#tally.countRequest({
      listener,
      route,
      backend,
      reason,
      status,
      // There is no last byte of a response that the client did not wait for.
      durationMs: Number.isNaN(micros) ? this.#number(1) : micros / 1_000,
      bytesReceived: this.#number(2),
      bytesSent: this.#number(3),
      attempts: this.#number(4),
    });
  }

  #number(at: number): number {
    return this.#numbers[at] || 0;
  }

  #outcome(text: string): Outcome {
    const known = this.#outcomes.get(text);
    if (known !== undefined) return known;
    if (this.#outcomes.size >= MOST_OUTCOMES) this.#outcomes.clear();
    const [code, flags = "", details = "", backend = "-", route = "", refusal = ""] = text.split("\t");
    const status = Number(code) || 0;
    const said = { flags, details, backend, route, refusal, status };
    const outcome = { ...readOutcome(this.#gateway, said), status };
    this.#outcomes.set(text, outcome);
    return outcome;
  }
}

/** Envoy rejects a connection whose name has no certificate, or no filter chain (`NR`). */
function handshakeFailure(flags: string, reason: string): HandshakeResult {
  if (reason.includes("CONNECTION_REJECTED") || (flags === "NR" && reason === "-")) return "unknown_name";
  return /PEER_DID_NOT_RETURN_A_CERTIFICATE|CERTIFICATE_VERIFY_FAILED/.test(reason)
    ? "client_certificate"
    : "failed";
}
