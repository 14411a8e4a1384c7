/**
 * What a suite is: where its programs come from, which backends it needs, and how its cases are run
 * and read.
 */

import type { Target } from "./contestants.ts";

export type Outcome = "passed" | "failed" | "skipped";

export interface Case {
  /** Says how the suite was run, such as `cleartext` or `TLS`; a row of the table. */
  readonly part: string;
  /** The suite's own name of the case. */
  readonly name: string;
  readonly outcome: Outcome;
  /** In the suite's own words, shortened. */
  readonly reason?: string;
}

/** A server that the gateway forwards to; it listens on loopback. */
export interface Backend {
  readonly name: string;
  /** Without a hostname it serves whoever asks for none of the others. */
  readonly hostname?: string;
  readonly protocol: "http" | "h2c" | "grpc";
  readonly port: number;
  /**
   * It has ports of the gateway for itself, for suites that ask by address and cannot say a
   * hostname.
   */
  readonly ownListener?: boolean;
  /** Where the same server speaks TLS itself, for the runs without a gateway. */
  readonly tlsPort?: number;
}

/** The files and processes of one run of a suite; all of them end with it. */
export interface Room {
  readonly folder: string;
  readonly short: boolean;
  readonly certificates: Certificates;
  say(line: string): void;
  /** Something to end when the suite is over; the last one is ended first. */
  keep(end: () => Promise<void>): void;
}

/** PEM files of one authority and of one certificate for loopback and `*.suites.test`. */
export interface Certificates {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

export interface Suite {
  readonly name: string;
  /** Program and version, as a registry names it. */
  readonly source: string;
  /** One clause about what it asks. */
  readonly about: string;
  /** Whether the short form runs it. */
  readonly short: boolean;
  /** Gets the programs from their registries, unless they are in the cache. */
  install(room: Room): Promise<void>;
  /** Starts the backends, or says where they will be. */
  start(room: Room): Promise<readonly Backend[]>;
  run(target: Target, room: Room): Promise<readonly Case[]>;
}

/** A lack of the machine or of the command line: shown as one message that says what to do. */
export class SuiteFailure extends Error {
  override readonly name: string = "SuiteFailure";
}
