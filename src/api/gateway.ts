import type { Condition, LabelSelector, ObjectMeta } from "./metadata.ts";
import type { BackendObjectReference, LocalObjectReference, ObjectReference } from "./references.ts";

export interface GatewayClass {
  readonly apiVersion: string;
  readonly kind: "GatewayClass";
  readonly metadata: ObjectMeta;
  readonly spec: {
    readonly controllerName: string;
    readonly description?: string;
    readonly parametersRef?: ObjectReference;
  };
  readonly status?: { readonly conditions?: readonly Condition[] };
}

export interface Gateway {
  readonly apiVersion: string;
  readonly kind: "Gateway";
  readonly metadata: ObjectMeta;
  readonly spec: GatewaySpec;
  readonly status?: GatewayStatus;
}

export interface GatewaySpec {
  readonly gatewayClassName: string;
  readonly listeners?: readonly Listener[];
  readonly addresses?: readonly GatewaySpecAddress[];
  readonly allowedListeners?: { readonly namespaces?: NamespaceSelection };
  readonly defaultScope?: "All" | "None";
  readonly infrastructure?: GatewayInfrastructure;
  readonly tls?: GatewayTls;
}

export interface GatewaySpecAddress {
  readonly type: string;
  readonly value?: string;
}

export interface GatewayInfrastructure {
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly parametersRef?: LocalObjectReference;
  /** Provisional revision of GEP-1713: makes this Gateway a child of another one. */
  readonly attachTo?: ObjectReference;
  /** Provisional revision of GEP-1713: lets children attach to this Gateway. */
  readonly allowedChildren?: { readonly namespaces?: NamespaceSelection };
}

export interface NamespaceSelection {
  readonly from: "All" | "Selector" | "Same" | "None";
  readonly selector?: LabelSelector;
}

export interface GatewayTls {
  readonly backend?: { readonly clientCertificateRef?: ObjectReference };
  readonly frontend?: {
    readonly default: FrontendTls;
    readonly perPort?: readonly { readonly port: number; readonly tls: FrontendTls }[];
  };
}

export interface FrontendTls {
  readonly validation?: FrontendValidation;
}

export interface FrontendValidation {
  readonly caCertificateRefs: readonly ObjectReference[];
  readonly mode: "AllowValidOnly" | "AllowInsecureFallback";
}

/**
 * One listener of a Gateway, a ListenerSet or an XListenerSet (where the port may be absent or 0).
 */
export interface Listener {
  readonly name: string;
  readonly hostname?: string;
  readonly port?: number;
  readonly protocol: string;
  readonly tls?: ListenerTls;
  readonly allowedRoutes?: AllowedRoutes;
  readonly filters?: { readonly requests?: readonly ListenerFilter[] };
}

export interface ListenerTls {
  readonly mode: "Terminate" | "Passthrough";
  readonly certificateRefs?: readonly ObjectReference[];
  readonly options?: Readonly<Record<string, string>>;
}

export interface ListenerFilter {
  readonly type: string;
  readonly externalAuth?: { readonly backendRef: BackendObjectReference };
  readonly extensionRef?: LocalObjectReference;
}

export interface AllowedRoutes {
  readonly namespaces?: NamespaceSelection;
  readonly kinds?: readonly RouteGroupKind[];
}

export interface RouteGroupKind {
  readonly group: string;
  readonly kind: string;
}

export interface GatewayStatus {
  readonly addresses?: readonly GatewayStatusAddress[];
  readonly attachedListenerSets?: number;
  readonly conditions?: readonly Condition[];
  readonly listeners?: readonly ListenerStatus[];
}

export interface GatewayStatusAddress {
  readonly type: string;
  readonly value: string;
}

export interface ListenerStatus {
  readonly name: string;
  /** Only sets report the port: XListenerSet entries may be given one by the gateway. */
  readonly port?: number;
  readonly supportedKinds: readonly RouteGroupKind[];
  readonly attachedRoutes: number;
  readonly conditions: readonly Condition[];
}

/** The standard ListenerSet and the experimental XListenerSet have one shape. */
export interface ListenerSet {
  readonly apiVersion: string;
  readonly kind: "ListenerSet" | "XListenerSet";
  readonly metadata: ObjectMeta;
  readonly spec: { readonly parentRef: ObjectReference; readonly listeners: readonly Listener[] };
  readonly status?: {
    readonly conditions?: readonly Condition[];
    readonly listeners?: readonly ListenerStatus[];
  };
}
