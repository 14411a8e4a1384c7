/**
 * One object of each kind that has nearly every field, so that every field is broken sooner or
 * later.
 */
import { parseAllDocuments } from "yaml";

export function wholeObjects(): readonly unknown[] {
  return parseAllDocuments(TEXT).map((document) => document.toJS() as unknown);
}

const TEXT = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: whole, labels: {a.example/b: c}, annotations: {d.example/e: f g}}
spec:
  controllerName: example.com/controller
  description: all there is
  parametersRef: {group: example.com, kind: Parameters, name: p, namespace: infra}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: whole, labels: {app: x}}
spec:
  gatewayClassName: mergeway
  addresses: [{type: IPAddress, value: 192.0.2.1}, {type: Hostname, value: lb.example.com}, {type: example.com/pool, value: p}]
  infrastructure:
    labels: {a.example/team: a}
    annotations: {a.example/note: b}
    parametersRef: {group: example.com, kind: Parameters, name: p}
  allowedListeners:
    namespaces: {from: Selector, selector: {matchLabels: {team: a}, matchExpressions: [{key: b, operator: In, values: [c]}]}}
  tls:
    backend: {clientCertificateRef: {group: "", kind: Secret, name: client}}
    frontend:
      default:
        validation: {mode: AllowValidOnly, caCertificateRefs: [{group: "", kind: ConfigMap, name: ca}]}
      perPort:
      - port: 443
        tls: {validation: {mode: AllowInsecureFallback, caCertificateRefs: [{group: "", kind: ConfigMap, name: ca, namespace: other}]}}
  listeners:
  - name: http
    port: 80
    protocol: HTTP
    hostname: '*.example.com'
    allowedRoutes:
      kinds: [{group: gateway.networking.k8s.io, kind: HTTPRoute}]
      namespaces: {from: Same}
  - name: https
    port: 443
    protocol: HTTPS
    hostname: a.example.com
    tls: {mode: Terminate, certificateRefs: [{group: "", kind: Secret, name: cert, namespace: certs}], options: {example.com/ciphers: modern}}
  - {name: tls, port: 8443, protocol: TLS, hostname: b.example.com, tls: {mode: Passthrough}}
  - {name: tcp, port: 9000, protocol: TCP}
  - {name: udp, port: 9000, protocol: UDP}
---
apiVersion: gateway.networking.k8s.io/v1
kind: ListenerSet
metadata: {name: whole}
spec:
  parentRef: {group: gateway.networking.k8s.io, kind: Gateway, name: shared, namespace: infra}
  listeners:
  - name: https
    port: 443
    protocol: HTTPS
    hostname: a.example.com
    tls: {mode: Terminate, certificateRefs: [{group: "", kind: Secret, name: cert}], options: {example.com/x: y}}
    allowedRoutes:
      kinds: [{kind: HTTPRoute}]
      namespaces: {from: Selector, selector: {matchExpressions: [{key: b, operator: Exists}]}}
  - {name: http, port: 80, protocol: HTTP, hostname: a.example.com}
  - {name: tcp, port: 9000, protocol: TCP}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: whole}
spec:
  parentRefs:
  - {group: gateway.networking.k8s.io, kind: ListenerSet, name: ls, namespace: a, sectionName: web}
  - {name: gw, port: 80}
  - {name: gw, port: 81}
  hostnames: [a.example.com, '*.b.example.com']
  rules:
  - name: first
    matches:
    - path: {type: PathPrefix, value: /a}
      method: GET
      headers: [{type: Exact, name: x-a, value: b}, {type: RegularExpression, name: x-c, value: 'd.*'}]
      queryParams: [{type: Exact, name: q, value: r}]
    filters:
    - type: RequestHeaderModifier
      requestHeaderModifier: {set: [{name: a, value: b}], add: [{name: c, value: d}], remove: [e]}
    - type: ResponseHeaderModifier
      responseHeaderModifier: {set: [{name: a, value: b}], add: [{name: c, value: d}], remove: [e]}
    - type: RequestMirror
      requestMirror: {backendRef: {group: "", kind: Service, name: m, namespace: n, port: 80}, fraction: {numerator: 1, denominator: 3}}
    - type: URLRewrite
      urlRewrite: {hostname: b.example.com, path: {type: ReplacePrefixMatch, replacePrefixMatch: /b}}
    - type: ExtensionRef
      extensionRef: {group: example.com, kind: Filter, name: f}
    timeouts: {request: 10s, backendRequest: 1h30m}
    backendRefs:
    - group: ""
      kind: Service
      name: b
      namespace: n
      port: 80
      weight: 3
      filters:
      - {type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: a, value: b}]}}
  - matches: [{path: {type: PathPrefix, value: /old}}]
    filters:
    - type: RequestRedirect
      requestRedirect: {scheme: https, hostname: c.example.com, port: 443, statusCode: 301, path: {type: ReplaceFullPath, replaceFullPath: /new}}
  - matches: [{path: {type: Exact, value: /mirror}}]
    filters:
    - {type: RequestMirror, requestMirror: {backendRef: {name: m, port: 80}, percent: 10}}
    - type: CORS
      cors:
        allowOrigins: ['https://a.example.com']
        allowMethods: [GET]
        allowHeaders: [x-a]
        exposeHeaders: [x-b]
        allowCredentials: true
        maxAge: 600
    backendRefs: [{name: b, port: 80}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: whole}
spec:
  parentRefs: [{name: gw, sectionName: a}, {name: gw, sectionName: b}]
  hostnames: [a.example.com]
  rules:
  - name: first
    matches:
    - method: {type: Exact, service: a.B, method: C}
      headers: [{type: Exact, name: x-a, value: b}]
    - method: {type: RegularExpression, service: 'a\\..*'}
    filters:
    - {type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: a, value: b}], remove: [e]}}
    - {type: ResponseHeaderModifier, responseHeaderModifier: {add: [{name: c, value: d}]}}
    - {type: RequestMirror, requestMirror: {backendRef: {name: m, port: 80}, percent: 10}}
    - {type: ExtensionRef, extensionRef: {group: example.com, kind: Filter, name: f}}
    backendRefs: [{name: b, port: 80, weight: 1, filters: [{type: RequestHeaderModifier, requestHeaderModifier: {remove: [x]}}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: TLSRoute
metadata: {name: whole}
spec:
  parentRefs: [{name: gw, namespace: infra, port: 443}]
  hostnames: [a.example.com, '*.example.com']
  rules: [{name: only, backendRefs: [{name: b, port: 443, weight: 0}, {name: c, port: 443}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: TCPRoute
metadata: {name: whole}
spec:
  parentRefs: [{name: gw, sectionName: tcp}]
  rules: [{name: only, backendRefs: [{name: b, port: 9000, weight: 1}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: UDPRoute
metadata: {name: whole}
spec:
  parentRefs: [{name: gw, sectionName: udp}]
  rules: [{name: only, backendRefs: [{name: b, port: 9000, weight: 1}]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {name: whole}
spec:
  from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: a}]
  to: [{group: "", kind: Service}, {group: "", kind: Secret, name: s}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: whole}
spec:
  targetRefs: [{group: "", kind: Service, name: b, sectionName: https}, {group: "", kind: Service, name: c}]
  validation:
    hostname: b.example.com
    caCertificateRefs: [{group: "", kind: ConfigMap, name: ca}]
    subjectAltNames: [{type: Hostname, hostname: c.example.com}, {type: URI, uri: 'spiffe://a/b'}]
  options: {example.com/x: y}
---
apiVersion: gateway.networking.k8s.io/v1
kind: BackendTLSPolicy
metadata: {name: system}
spec:
  targetRefs: [{group: "", kind: Service, name: b}]
  validation: {hostname: b.example.com, wellKnownCACertificates: System}
---
apiVersion: mergeway.dev/v1alpha1
kind: GatewayParameters
metadata: {name: whole}
spec:
  dataPlane: envoy
  replicas: 2
  image: example.com/mergeway:1
  workers: 2
  accessLog:
    stdout: {text: '%client% "%method% %path%" %status% 100%%'}
    otlp: {endpoint: 'http://collector.observability:4318'}
  tracing:
    otlp: {endpoint: 'https://collector.observability:4317', protocol: GRPC}
    samplingPercentage: 10
    clientContext: Continue
    overrides: [{kind: HTTPRoute, namespace: team, name: shop, samplingPercentage: 50}]
  envoy: {image: 'envoy:1', agentResources: {requests: {cpu: 20m}, limits: {memory: 1Gi}}}
  tunnel:
    accountId: 0123456789abcdef0123456789abcdef
    credentialsSecretRef: {name: cloudflare, key: api-token}
    name: edge
    deletionPolicy: Retain
    protocol: auto
    connections: 2
    image: cloudflared:1
    resources: {requests: {cpu: 20m}, limits: {memory: 1Gi}}
  resources: {requests: {cpu: 1, memory: 96Mi}, limits: {cpu: '2'}}
  service: {type: LoadBalancer, annotations: {a.example/b: c}, loadBalancerClass: a.example/lb, externalTrafficPolicy: Local}
  podDisruptionBudget: {minAvailable: 50%}
  podTemplate:
    labels: {a: b}
    annotations: {a.example/b: c}
    nodeSelector: {a.example/pool: edge}
    tolerations: [{key: a, operator: Equal, value: b, effect: NoExecute, tolerationSeconds: 60}, {operator: Exists}]
    affinity: {nodeAffinity: {anything: 1}}
    topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, minDomains: 2}]
    priorityClassName: high
    imagePullSecrets: [{name: pull}]
    terminationGracePeriodSeconds: 30
---
apiVersion: mergeway.dev/v1alpha1
kind: GatewayParameters
metadata: {name: token}
spec:
  autoscaling: {minReplicas: 1, maxReplicas: 3, targetCPUUtilizationPercentage: 60}
  podDisruptionBudget: {minAvailable: 1}
  tunnel: {tunnelTokenSecretRef: {name: tunnel, key: token}}
---
apiVersion: mergeway.dev/v1alpha1
kind: GatewayParameters
metadata: {name: id}
spec:
  tunnel:
    accountId: 0123456789abcdef0123456789abcdef
    credentialsSecretRef: {name: cloudflare}
    tunnelId: 8a4dc4a0-3c29-4f2c-9c3c-1f0d7b0f0a11
---
apiVersion: mergeway.dev/v1alpha1
kind: TrafficPolicy
metadata: {name: whole}
spec:
  targetRefs:
    - {group: gateway.networking.k8s.io, kind: Gateway, name: gw, sectionName: http}
    - {group: gateway.networking.x-k8s.io, kind: XListenerSet, name: set}
    - {kind: HTTPRoute, name: web, sectionName: only}
  defaults:
    clientAddresses: {allow: [192.0.2.0/24, '2001:db8::/32'], deny: [192.0.2.7]}
    rateLimits: [{requests: 10, period: 1m30s, burst: 20, per: Header, header: X-Key}]
  overrides:
    clientAddresses: {allow: []}
    rateLimits: [{requests: 1000000000, per: ClientAddress}, {requests: 1, period: 24h}]
---
apiVersion: mergeway.dev/v1alpha1
kind: TrafficPolicy
metadata: {name: rules}
spec:
  targetRefs: [{kind: Gateway, name: gw}]
  defaults:
    retries: {attempts: 10, codes: [400, 599], methods: [GET, PATCH], backoff: 50ms}
    cors:
      allowOrigins: ['https://*.example.com:8443']
      allowCredentials: true
      allowMethods: [GET, PATCH]
      allowHeaders: [X-One]
      exposeHeaders: [X-Two]
      maxAge: 60
    compression:
      enabled: true
      algorithms: [zstd, gzip]
      minBytes: 256
      contentTypes: [text/html, application/vnd.api+json]
    directResponse:
      enabled: false
      status: 599
      contentType: "text/html; charset=utf-8"
      retryAfter: 5m
      body: {inline: later}
  overrides:
    retries: {attempts: 0}
    cors: {}
    compression: {enabled: false}
    directResponse: {body: {configMapRef: {name: pages, key: later.html}}}
---
apiVersion: mergeway.dev/v1alpha1
kind: TrafficPolicy
metadata: {name: authentication}
spec:
  targetRefs: [{kind: Gateway, name: gw}]
  defaults:
    apiKeys: {secretRef: {name: a}, headers: [X-Api-Key], queryParameters: [key], clientHeader: X-Client}
    basicAuth: {secretRef: {name: a}, userHeader: X-User}
    jwt:
      issuers:
        - {issuer: a, audiences: [b], jwks: {inline: '{}'}}
        - {issuer: b, jwks: {configMapRef: {name: a}}}
        - {issuer: c, jwks: {url: 'https://a.example/keys'}}
      requiredClaims: [{claim: a.b, values: [c]}]
      claimHeaders: [{claim: sub, header: X-User}]
  overrides:
    externalAuth:
      backendRef: {group: "", kind: Service, name: a, namespace: b, port: 80}
      protocol: HTTP
      forwardBody: {maxSize: 1024}
      path: /a
      pathType: Prefix
      requestHeaders: [Cookie]
      responseHeaders: [X-User]
      clientHeaders: [Set-Cookie]
      refusalHeaders: [Location]
      timeout: 1s
---
apiVersion: mergeway.dev/v1alpha1
kind: ClientPolicy
metadata: {name: whole}
spec:
  targetRefs: [{kind: Gateway, name: gw}, {kind: ListenerSet, name: set, sectionName: http}]
  defaults: {clientAddress: {proxyProtocol: Optional, forwardedFor: {trustedHops: 2}}}
  overrides: {clientAddress: {proxyProtocol: Required, forwardedFor: {trustedNetworks: [10.0.0.0/8, '::1']}}}
---
apiVersion: mergeway.dev/v1alpha1
kind: BackendPolicy
metadata: {name: whole}
spec:
  targetRefs: [{group: "", kind: Service, name: app, sectionName: http}, {kind: HTTPRoute, name: web}]
  defaults:
    loadBalancing: {type: ConsistentHash, consistentHash: {key: Header, header: X-User}}
    sessionPersistence: {type: Header, header: {name: X-Session}}
    limits: {connections: 10, pendingRequests: 5, requests: 20}
  overrides:
    loadBalancing: {type: ConsistentHash, consistentHash: {key: Cookie, cookie: cart}}
    sessionPersistence: {type: Cookie, cookie: {name: cart, lifetimeType: Permanent}, absoluteTimeout: 1h}
---
apiVersion: mergeway.dev/v1alpha1
kind: TenantPolicy
metadata: {name: whole}
spec:
  targetRefs: [{kind: Gateway, name: gw}]
  enforcement: Audit
  unmatchedNamespaces: Allow
  reservedHostnames: [login.example.com]
  rules:
    - name: teams
      namespaceSelector: {matchLabels: {tenant: 'yes'}}
      hostnames: {allow: ['{namespace}.example.com'], deny: ['admin.{namespace}.example.com']}
      ports: [{port: 80}, {port: 8000, endPort: 8999}]
      protocols: [HTTP, TCP]
      quota: {listeners: 8}
---
apiVersion: v1
kind: Namespace
metadata: {name: whole, labels: {team: a}}
---
apiVersion: v1
kind: Service
metadata: {name: whole}
spec:
  type: ClusterIP
  selector: {app: x}
  ports:
  - {name: http, port: 80, targetPort: web, protocol: TCP, appProtocol: kubernetes.io/h2c}
  - {name: https, port: 443, targetPort: 8443}
---
apiVersion: v1
kind: Service
metadata: {name: outside}
spec: {type: ExternalName, externalName: www.example.com}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: whole, labels: {kubernetes.io/service-name: whole}}
addressType: IPv4
endpoints:
- {addresses: [10.1.2.3], conditions: {ready: true, serving: true, terminating: false}, zone: a}
- {addresses: [10.1.2.4]}
ports: [{name: http, port: 80, protocol: TCP, appProtocol: http}, {name: https, port: 443}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: six}
addressType: IPv6
endpoints: [{addresses: ['2001:db8::1']}]
ports: [{port: 80}]
---
apiVersion: v1
kind: Secret
metadata: {name: whole}
type: kubernetes.io/tls
immutable: true
data: {tls.crt: eA==, tls.key: eQ==}
stringData: {more: text}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: whole}
immutable: false
data: {ca.crt: text}
binaryData: {b: eA==}
`;
