/** Limits of clients, as a ClientPolicy writes them. */
import type { ClientSettings } from "../../api/client-policy.ts";
import type { ClientLimits } from "../../plan/limits/client-limits.ts";
import { milliseconds } from "../foundation/durations.ts";
import type { Unreadable } from "./request-limits.ts";

const LARGEST_HEADER_KIB = 96;
const MOST_FIELDS = 1_000;
const MOST_STREAMS = 1_000;
const SHORTEST_MS = 1_000;
const LONGEST_MS = 3_600_000;

export function readHeaderLimits({
  maxSize,
  maxCount,
  timeout,
}: NonNullable<ClientSettings["headerLimits"]>): ClientLimits | Unreadable {
  const [, kib] = /^(\d{1,3})Ki$/.exec(maxSize ?? "") ?? [];
  if (maxSize !== undefined && !isWithin(Number(kib), 1, LARGEST_HEADER_KIB))
    return { problem: `headerLimits.maxSize: ${JSON.stringify(maxSize)} is not from 1Ki to 96Ki` };
  if (maxCount !== undefined && !isWithin(maxCount, 1, MOST_FIELDS))
    return { problem: `headerLimits.maxCount: ${maxCount} is not from 1 to ${MOST_FIELDS}` };
  if (timeout !== undefined && !isTime(timeout))
    return { problem: `headerLimits.timeout: ${timeout} is not from 1s to 1h` };
  return {
    ...(kib === undefined ? {} : { headerBytes: Number(kib) * 1024 }),
    ...(maxCount === undefined ? {} : { headerCount: maxCount }),
    ...(timeout === undefined ? {} : { headerTimeoutMs: milliseconds(timeout) }),
  };
}

export function readConnectionLimits({
  idleTimeout,
  maxConcurrentStreams,
}: NonNullable<ClientSettings["connections"]>): ClientLimits | Unreadable {
  if (idleTimeout !== undefined && !isTime(idleTimeout))
    return { problem: `connections.idleTimeout: ${idleTimeout} is not from 1s to 1h` };
  if (maxConcurrentStreams !== undefined && !isWithin(maxConcurrentStreams, 1, MOST_STREAMS))
    return {
      problem: `connections.maxConcurrentStreams: ${maxConcurrentStreams} is not from 1 to ${MOST_STREAMS}`,
    };
  return {
    ...(idleTimeout === undefined ? {} : { idleMs: milliseconds(idleTimeout) }),
    ...(maxConcurrentStreams === undefined ? {} : { concurrentStreams: maxConcurrentStreams }),
  };
}

function isTime(duration: string): boolean {
  return isWithin(milliseconds(duration), SHORTEST_MS, LONGEST_MS);
}

function isWithin(value: number, least: number, most: number): boolean {
  return Number.isInteger(value) && value >= least && value <= most;
}
