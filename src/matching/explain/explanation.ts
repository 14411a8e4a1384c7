import type { Endpoint } from "../../plan/backend.ts";
import type { GuardItem } from "../../plan/guard.ts";
import type { ItemId, OwnerRef } from "../../plan/plan.ts";
import type { RuleOrigin } from "../../plan/rule.ts";

/** A request as a person asks about it. */
export interface ExplainedRequest {
  /** The number that a listener names, or a port item's id. */
  readonly port: number | ItemId;
  /** `namespace/name`, for a number that several Gateways use. */
  readonly gateway?: string;
  readonly scheme: "http" | "https" | "tls" | "tcp" | "udp";
  /** Host header or `:authority`. */
  readonly authority: string;
  /** Absent: the host of the authority, as clients do; empty: none is sent. */
  readonly sni?: string;
  readonly method: string;
  /** Without query, normalised as the data plane does. */
  readonly path: string;
  /** Raw, without "?". */
  readonly query: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** The client presents a certificate that the port's authorities have signed. */
  readonly clientCertificate?: boolean;
  /** The client's address as the port finds it; absent: nobody in particular. */
  readonly client?: string;
}

export interface Explanation {
  /** `refuse`: the connection or its TLS handshake comes to nothing, there is no HTTP answer. */
  readonly outcome: "forward" | "respond" | "refuse";
  /** For `respond`. */
  readonly status?: number;
  /** For redirects. */
  readonly location?: string;
  readonly listener?: CandidateListener;
  readonly route?: RuleOrigin;
  readonly backends: readonly BackendShare[];
  /** The guards of the rule, in their order. */
  readonly guards: readonly GuardOutcome[];
  /** What was decided, in order. */
  readonly steps: readonly ExplanationStep[];
  /** Every other candidate, and why it lost. */
  readonly eliminated: readonly Elimination[];
}

export interface CandidateListener extends OwnerRef {
  readonly section: string;
  readonly hostname: string;
}

export interface BackendShare {
  /** Absent, as name and port: the reference is invalid. */
  readonly namespace?: string;
  readonly name?: string;
  readonly port?: number;
  readonly weight: number;
  /** Between 0 and 1. */
  readonly share: number;
  readonly endpoints: readonly Endpoint[];
  /** What this share of the requests is answered with instead of being forwarded. */
  readonly status?: 500 | 503;
}

export interface GuardOutcome {
  readonly id: ItemId;
  /** Absent: the plan does not have the guard. */
  readonly guard?: Pick<GuardItem, "policy" | "check">;
  /**
   * `counts`: a rate limit, which nobody knows beforehand. `asks`: for credentials, or a service.
   * `depends`: on the address of the client.
   */
  readonly result: "passes" | "refuses" | "counts" | "asks" | "depends" | "absent";
}

export interface ExplanationStep {
  readonly at:
    | "port"
    | "client"
    | "sni"
    | "certificate"
    | "listener"
    | "authority"
    | "host"
    | "rule"
    | "guard"
    | "backend";
  readonly text: string;
}

/** One candidate that lost. For a route's rule, `listener` is the one that it is attached to. */
export interface Elimination {
  readonly listener: CandidateListener;
  readonly route?: RuleOrigin;
  readonly rule: EliminationRule;
  readonly reason: string;
}

export type EliminationRule =
  | "port" // another Gateway's port of the same number
  | "hostname" // the pattern does not match the name
  | "specificity" // the pattern matches, a more specific one wins
  | "misdirected" // 421: the connection belongs to another listener
  | "path"
  | "method"
  | "header"
  | "query"
  | "precedence"; // matches as well, another rule goes first
