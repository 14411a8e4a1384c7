import type { Condition, ObjectMeta } from "./metadata.ts";
import type {
  BackendObjectReference,
  BackendRef,
  LocalObjectReference,
  ParentReference,
} from "./references.ts";

export interface RouteStatus {
  readonly parents?: readonly RouteParentStatus[];
}

export interface RouteParentStatus {
  readonly parentRef: ParentReference;
  readonly controllerName: string;
  readonly conditions?: readonly Condition[];
}

interface RouteSpecBase {
  readonly parentRefs?: readonly ParentReference[];
  readonly useDefaultGateways?: "All" | "None";
}

export interface HttpRoute {
  readonly apiVersion: string;
  readonly kind: "HTTPRoute";
  readonly metadata: ObjectMeta;
  readonly spec: RouteSpecBase & {
    readonly hostnames?: readonly string[];
    readonly rules?: readonly HttpRouteRule[];
  };
  readonly status?: RouteStatus;
}

export interface HttpRouteRule {
  readonly name?: string;
  readonly matches?: readonly HttpRouteMatch[];
  readonly filters?: readonly RouteFilter[];
  readonly backendRefs?: readonly FilteredBackendRef[];
  readonly timeouts?: { readonly request?: string; readonly backendRequest?: string };
  readonly retry?: {
    readonly codes?: readonly number[];
    readonly attempts?: number;
    readonly backoff?: string;
  };
  readonly sessionPersistence?: SessionPersistence;
}

export interface SessionPersistence {
  readonly type: "Cookie" | "Header";
  readonly absoluteTimeout?: string;
  readonly cookie?: {
    readonly name?: string;
    readonly path?: string;
    readonly lifetimeType: "Permanent" | "Session";
  };
  readonly header?: { readonly name: string };
}

export interface HttpRouteMatch {
  readonly path?: { readonly type: "Exact" | "PathPrefix" | "RegularExpression"; readonly value: string };
  readonly headers?: readonly RouteValueMatch[];
  readonly queryParams?: readonly RouteValueMatch[];
  readonly method?: string;
}

export interface RouteValueMatch {
  readonly type: "Exact" | "RegularExpression";
  readonly name: string;
  readonly value: string;
}

export interface FilteredBackendRef extends BackendRef {
  readonly filters?: readonly RouteFilter[];
}

/**
 * A filter of an HTTPRoute or GRPCRoute; admission has made sure that the field named by `type` is
 * there.
 */
export interface RouteFilter {
  readonly type: string;
  readonly requestHeaderModifier?: HeaderModifier;
  readonly responseHeaderModifier?: HeaderModifier;
  readonly requestMirror?: {
    readonly backendRef: BackendObjectReference;
    readonly percent?: number;
    readonly fraction?: { readonly numerator: number; readonly denominator: number };
  };
  readonly requestRedirect?: {
    readonly scheme?: string;
    readonly hostname?: string;
    readonly port?: number;
    readonly path?: PathModifier;
    readonly statusCode: number;
  };
  readonly urlRewrite?: { readonly hostname?: string; readonly path?: PathModifier };
  readonly cors?: {
    readonly allowOrigins?: readonly string[];
    readonly allowCredentials?: boolean;
    readonly allowMethods?: readonly string[];
    readonly allowHeaders?: readonly string[];
    readonly exposeHeaders?: readonly string[];
    readonly maxAge: number;
  };
  readonly externalAuth?: {
    readonly protocol: "HTTP" | "GRPC";
    readonly backendRef: BackendObjectReference;
    readonly http?: {
      readonly path?: string;
      readonly allowedHeaders?: readonly string[];
      readonly allowedResponseHeaders?: readonly string[];
    };
    readonly grpc?: { readonly allowedHeaders?: readonly string[] };
    readonly forwardBody?: { readonly maxSize?: number };
  };
  readonly extensionRef?: LocalObjectReference;
}

export interface HeaderModifier {
  readonly set?: readonly HeaderValue[];
  readonly add?: readonly HeaderValue[];
  readonly remove?: readonly string[];
}

export interface HeaderValue {
  readonly name: string;
  readonly value: string;
}

export interface PathModifier {
  readonly type: "ReplaceFullPath" | "ReplacePrefixMatch";
  readonly replaceFullPath?: string;
  readonly replacePrefixMatch?: string;
}

export interface GrpcRoute {
  readonly apiVersion: string;
  readonly kind: "GRPCRoute";
  readonly metadata: ObjectMeta;
  readonly spec: RouteSpecBase & {
    readonly hostnames?: readonly string[];
    readonly rules?: readonly GrpcRouteRule[];
  };
  readonly status?: RouteStatus;
}

export interface GrpcRouteRule {
  readonly name?: string;
  readonly matches?: readonly GrpcRouteMatch[];
  readonly filters?: readonly RouteFilter[];
  readonly backendRefs?: readonly FilteredBackendRef[];
  readonly sessionPersistence?: SessionPersistence;
}

export interface GrpcRouteMatch {
  readonly method?: {
    readonly type: "Exact" | "RegularExpression";
    readonly service?: string;
    readonly method?: string;
  };
  readonly headers?: readonly RouteValueMatch[];
}

interface L4Rule {
  readonly name?: string;
  readonly backendRefs?: readonly BackendRef[];
}

export interface TlsRoute {
  readonly apiVersion: string;
  readonly kind: "TLSRoute";
  readonly metadata: ObjectMeta;
  readonly spec: RouteSpecBase & {
    readonly hostnames?: readonly string[];
    readonly rules?: readonly L4Rule[];
  };
  readonly status?: RouteStatus;
}

export interface L4Route {
  readonly apiVersion: string;
  readonly kind: "TCPRoute" | "UDPRoute";
  readonly metadata: ObjectMeta;
  readonly spec: RouteSpecBase & { readonly rules?: readonly L4Rule[] };
  readonly status?: RouteStatus;
}

export type Route = HttpRoute | GrpcRoute | TlsRoute | L4Route;
