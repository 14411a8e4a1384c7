import type { BackendObjectReference } from "./references.ts";

/** Who may send requests: settings of a TrafficPolicy. */
export interface AuthenticationSettings {
  readonly apiKeys?: ApiKeySettings;
  readonly basicAuth?: BasicAuthSettings;
  readonly jwt?: JwtSettings;
  readonly externalAuth?: ExternalAuthSettings;
}

export interface ApiKeySettings {
  /** Of the policy's namespace: a client for each key of its data. */
  readonly secretRef: { readonly name: string };
  readonly headers?: readonly string[];
  readonly queryParameters?: readonly string[];
  readonly clientHeader?: string;
}

export interface BasicAuthSettings {
  /** Of the policy's namespace, with an htpasswd file. */
  readonly secretRef: { readonly name: string };
  readonly userHeader?: string;
}

export interface ExternalAuthSettings {
  readonly backendRef: BackendObjectReference;
  readonly protocol?: "HTTP" | "GRPC";
  readonly forwardBody?: { readonly maxSize: number };
  readonly path?: string;
  readonly pathType?: "Prefix" | "Exact";
  readonly requestHeaders?: readonly string[];
  readonly responseHeaders?: readonly string[];
  readonly clientHeaders?: readonly string[];
  readonly refusalHeaders?: readonly string[];
  readonly timeout?: string;
}

export interface JwtSettings {
  readonly issuers: readonly JwtIssuerSettings[];
  readonly requiredClaims?: readonly { readonly claim: string; readonly values: readonly string[] }[];
  readonly claimHeaders?: readonly { readonly claim: string; readonly header: string }[];
}

export interface JwtIssuerSettings {
  readonly issuer: string;
  readonly audiences?: readonly string[];
  /** One of the three. */
  readonly jwks: {
    readonly inline?: string;
    /** Of the policy's namespace, with the set under `jwks.json`. */
    readonly configMapRef?: { readonly name: string };
    readonly url?: string;
  };
}
