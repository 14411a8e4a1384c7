import type { AuthenticationSettings } from "./authentication.ts";
import type { ObjectMeta } from "./metadata.ts";
import type { PolicyStatus, PolicyTarget } from "./policies.ts";
import type { HeaderModifier, RouteFilter } from "./routes.ts";

/**
 * What traffic must meet (mergeway.dev/v1alpha1): attached to a Gateway, a set, a listener, a route
 * or a rule.
 */
export interface TrafficPolicy {
  readonly apiVersion: string;
  readonly kind: "TrafficPolicy";
  readonly metadata: ObjectMeta;
  readonly spec: {
    /** No field of the API: why a source could not read the settings. */
    readonly unreadable?: string;
    readonly targetRefs: readonly PolicyTarget[];
    /** Each field holds unless a nearer level sets it. */
    readonly defaults?: TrafficSettings;
    /** Each field holds whatever nearer levels set: they can only be stricter. */
    readonly overrides?: TrafficSettings;
  };
  readonly status?: PolicyStatus;
}

export interface TrafficSettings extends AuthenticationSettings {
  readonly clientAddresses?: { readonly allow?: readonly string[]; readonly deny?: readonly string[] };
  readonly rateLimits?: readonly RateLimit[];
  readonly requestBody?: { readonly maxSize: number | string };
  readonly requestHeaders?: HeaderModifier;
  readonly responseHeaders?: HeaderModifier;
  readonly httpsRedirect?: {
    readonly enabled?: boolean;
    readonly statusCode?: number;
    readonly port?: number;
  };
  readonly directResponse?: DirectResponseSettings;
  readonly cors?: NonNullable<RouteFilter["cors"]>;
  readonly compression?: CompressionSettings;
  readonly retries?: RetrySettings;
  readonly timeouts?: { readonly request?: string; readonly backendRequest?: string; readonly idle?: string };
}

export interface DirectResponseSettings {
  readonly enabled?: boolean;
  readonly status?: number;
  readonly contentType?: string;
  readonly retryAfter?: string;
  /** Absent: the answer has none. */
  readonly body?: {
    readonly inline?: string;
    readonly configMapRef?: { readonly name: string; readonly key: string };
  };
}

export interface CompressionSettings {
  readonly enabled?: boolean;
  readonly algorithms?: readonly string[];
  readonly minBytes?: number;
  readonly contentTypes?: readonly string[];
}

export interface RetrySettings {
  readonly attempts: number;
  readonly codes?: readonly number[];
  readonly methods?: readonly string[];
  readonly backoff?: string;
}

export interface RateLimit {
  readonly requests: number;
  readonly period: string;
  readonly burst?: number;
  readonly per: "All" | "ClientAddress" | "Header";
  readonly header?: string;
}
