/**
 * Carries one connection to the backend that its rule chooses; used for TLS (passthrough and
 * terminated) and TCP. What cannot be served is reset, never closed as if it had ended well: no
 * rule, a rule without a usable backend, an invalid reference's share, a backend whose policy
 * cannot be applied, a client that a guard of the rule does not let pass.
 */

import type { Duplex } from "node:stream";
import { chooseWeighted } from "../../../matching/weighted-choice.ts";
import type { BackendItem, Endpoint } from "../../../plan/backend.ts";
import type { CertificateItem } from "../../../plan/certificate.ts";
import type { ItemId, ListenerItem, PlanItem } from "../../../plan/plan.ts";
import type { Rule } from "../../../plan/rule.ts";
import { backendTlsOptions } from "../../backend-tls.ts";
import { letsStream } from "../guards/stream-guards.ts";
import { sideOf } from "../sockets/connect-endpoint.ts";
import { proxyStream, type StreamEnd } from "./proxy-stream.ts";

/** The part of the routing table that streams need. */
export interface StreamTable {
  listenerFor(port: ItemId, name: string | undefined): ListenerItem | undefined;
  streamRule(listener: ItemId, serverName: string | undefined): Rule | undefined;
  get<T extends "backend" | "guard">(type: T, id: ItemId): Extract<PlanItem, { type: T }> | undefined;
}

export interface StreamTimeouts {
  readonly connectTimeoutMs: number;
  readonly idleTimeoutMs: number;
}

export interface ServeStreamOptions {
  readonly client: Duplex;
  /** Of the client, for guards; without it no guard lets the client pass. */
  readonly address?: string;
  /** The TCP socket under `client` when TLS was terminated. */
  readonly transport?: Duplex | undefined;
  readonly rule: Rule | undefined;
  readonly table: StreamTable;
  /** The client's own TLS goes through to the backend: none is added. */
  readonly passthrough?: boolean;
  /** Presented to backends that ask for one. */
  readonly clientCertificate?: CertificateItem | undefined;
  readonly timeouts: StreamTimeouts;
  readonly random: () => number;
  readonly signal: AbortSignal;
  readonly onEnd?: ((end: StreamEnd) => void) | undefined;
}

export async function serveStream(options: ServeStreamOptions): Promise<void> {
  const { client, transport, table, rule, address = "", random, signal, onEnd } = options;
  const backend = letsStream(table, rule, address) ? backendOf(rule, table, random) : undefined;
  if (backend === undefined) {
    sideOf(client, transport).reset();
    onEnd?.({ reason: "refused", bytesFromClient: 0, bytesFromBackend: 0 });
    return;
  }
  const secure = backend.tls !== undefined && options.passthrough !== true;
  await proxyStream({
    client,
    transport,
    choose: inTurn(backend.endpoints, random),
    tls: secure ? backendTlsOptions(backend.tls, options.clientCertificate) : undefined,
    ...options.timeouts,
    signal,
    onEnd,
  });
}

/** The backend that serves the next stream of a rule; undefined when it is to be refused. */
export function backendOf(
  rule: Rule | undefined,
  table: StreamTable,
  random: () => number,
): BackendItem | undefined {
  if (rule?.action.type !== "forward") return undefined;
  const chosen = chooseWeighted(rule.action.backends, random);
  const backend = chosen?.backend === undefined ? undefined : table.get("backend", chosen.backend);
  return backend?.refused === undefined ? backend : undefined;
}

/** Every endpoint once, from a random one on. */
export function inTurn(endpoints: readonly Endpoint[], random: () => number): () => Endpoint | undefined {
  const start = Math.floor(random() * endpoints.length);
  let given = 0;
  return () => (given < endpoints.length ? endpoints[(start + given++) % endpoints.length] : undefined);
}
