/**
 * Failures of the Cloudflare API as values: what to tell the Gateway's owner, and whether it is
 * worth trying again. Messages are ours throughout; nothing that the API or a library wrote is
 * repeated, because it might repeat what we have sent.
 */
import Cloudflare from "cloudflare";

export interface TunnelProblem {
  /** A short CamelCase word. */
  readonly reason: string;
  readonly message: string;
}

export class ApiFailure extends Error {
  readonly problem: TunnelProblem;
  /** Transient: trying again later may help. */
  readonly passing: boolean;
  readonly status: number | undefined;

  constructor(problem: TunnelProblem, more: { readonly passing: boolean; readonly status?: number }) {
    super(problem.message);
    this.name = "ApiFailure";
    this.problem = problem;
    this.passing = more.passing;
    this.status = more.status;
  }
}

const PERMISSION = "it needs the permission Account · Cloudflare Tunnel · Edit for this account";

export function failureOf(error: unknown, doing: string): ApiFailure {
  if (error instanceof ApiFailure) return error;
  if (!(error instanceof Cloudflare.APIError)) {
    const message = `${doing}: the Cloudflare API answered what is not understood`;
    return new ApiFailure({ reason: "ApiUnavailable", message }, { passing: true });
  }
  const { status } = error;
  const codes = codesOf(error);
  const said = codes.length === 0 ? "" : ` (code ${codes.join(", ")})`;
  if (
    status === 401 ||
    status === 403 ||
    (status === 400 && codes.some((code) => CREDENTIAL_CODES.has(code)))
  ) {
    const message = `${doing}: Cloudflare refuses the API token${said}; ${PERMISSION}`;
    return new ApiFailure({ reason: "InvalidCredentials", message }, { passing: false, status });
  }
  if (status === 404) {
    const message = `${doing}: Cloudflare knows no such account or tunnel${said}`;
    return new ApiFailure({ reason: "TunnelNotFound", message }, { passing: false, status });
  }
  if (status === undefined || isPassing(status)) {
    const what =
      status === 429
        ? "limits our requests"
        : status === undefined
          ? "cannot be reached"
          : `answers ${status}`;
    return new ApiFailure(
      { reason: "ApiUnavailable", message: `${doing}: the Cloudflare API ${what}` },
      { passing: true, ...(status === undefined ? {} : { status }) },
    );
  }
  const message = `${doing}: Cloudflare refuses it with ${status}${said}`;
  return new ApiFailure({ reason: "ApiRefused", message }, { passing: false, status });
}

/**
 * For `retrying`: rate limits, failures of the server and of the way to it pass; nothing else does.
 */
export function judgeApiError(error: unknown): { readonly askedMs?: number } | undefined {
  if (!(error instanceof Cloudflare.APIError)) return undefined;
  if (error instanceof Cloudflare.APIUserAbortError) return undefined;
  if (error.status !== undefined && !isPassing(error.status)) return undefined;
  const askedMs = retryAfterMs(error.headers?.get("retry-after") ?? undefined, Date.now());
  return askedMs === undefined ? {} : { askedMs };
}

/** Seconds or a date (RFC 9110, 10.2.3). */
export function retryAfterMs(text: string | undefined, now: number): number | undefined {
  if (text === undefined) return undefined;
  const ms = /^\s*\d+(\.\d+)?\s*$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now;
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

function isPassing(status: number): boolean {
  return status === 408 || status === 429 || status >= 500;
}

/** Invalid request headers, invalid and malformed tokens, authentication errors. */
const CREDENTIAL_CODES: ReadonlySet<number> = new Set([6003, 6111, 9103, 9106, 9109, 10000, 10001]);

function codesOf(error: { readonly errors?: unknown }): readonly number[] {
  if (!Array.isArray(error.errors)) return [];
  return error.errors
    .map((entry: { readonly code?: unknown }) => entry?.code)
    .filter((code): code is number => typeof code === "number")
    .slice(0, 3);
}
