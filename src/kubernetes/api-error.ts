/** The `Status` object that an API server answers with when it refuses a request. */
interface StatusBody {
  readonly reason?: string;
  readonly message?: string;
  readonly details?: { readonly retryAfterSeconds?: number };
}

/** An answer of the API server that is not a success, or (with status 0) no answer at all. */
export class ApiError extends Error {
  readonly code: string;
  /** The HTTP status; 0 when no answer came. */
  readonly status: number;
  /** How long the server asks to be left alone. */
  readonly retryAfterMs: number | undefined;

  constructor(fields: {
    readonly status: number;
    readonly code: string;
    readonly message: string;
    readonly retryAfterMs?: number | undefined;
    readonly cause?: unknown;
  }) {
    super(fields.message, { cause: fields.cause });
    this.name = "ApiError";
    this.status = fields.status;
    this.code = fields.code;
    this.retryAfterMs = fields.retryAfterMs;
  }

  /** From a whole answer: `Retry-After` of the header wins over the one in the body. */
  static fromAnswer(what: string, status: number, body: string, retryAfter?: string): ApiError {
    const parsed = parseStatus(body);
    const seconds = Number(retryAfter ?? parsed.details?.retryAfterSeconds ?? Number.NaN);
    return new ApiError({
      status,
      code: parsed.reason || `HTTP${status}`,
      message: `${what}: ${status} ${parsed.message || body.slice(0, 200)}`.trim(),
      retryAfterMs: Number.isFinite(seconds) && seconds >= 0 ? seconds * 1000 : undefined,
    });
  }

  /** From the object of a watch event of type ERROR. */
  static fromWatchEvent(what: string, object: unknown): ApiError {
    const status = object as (StatusBody & { readonly code?: number }) | undefined;
    return new ApiError({
      status: typeof status?.code === "number" ? status.code : 500,
      code: status?.reason || "WatchError",
      message: `${what}: ${status?.message ?? "the watch reported an error"}`,
    });
  }

  static fromFailure(what: string, cause: unknown): ApiError {
    if (cause instanceof ApiError) return cause;
    const code = (cause as NodeJS.ErrnoException | undefined)?.code;
    return new ApiError({
      status: 0,
      code: typeof code === "string" ? code : "NoAnswer",
      message: `${what}: ${cause instanceof Error ? cause.message : String(cause)}`,
      cause,
    });
  }
}

function parseStatus(body: string): StatusBody {
  try {
    const parsed: unknown = JSON.parse(body);
    return typeof parsed === "object" && parsed !== null ? (parsed as StatusBody) : {};
  } catch {
    return {};
  }
}

export function hasStatus(error: unknown, status: number): boolean {
  return error instanceof ApiError && error.status === status;
}
