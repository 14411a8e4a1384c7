/** How much of a cluster somebody may read, and so what can be said to them. */
export interface ReadingScope {
  /**
   * `all`: everything is computed. `merge`: everything that decides who holds what is known, the
   * rest is as the statuses tell it. `part`: everything is as the statuses tell it.
   */
  readonly sees: "all" | "merge" | "part";
  /** Empty for the whole cluster. */
  readonly namespaces: readonly string[];
  /** Resources that may not be read, as in `secrets` and `gateways.gateway.networking.k8s.io`. */
  readonly unread: readonly string[];
}

/** Without one of these, a merge would be that of a part of the facts. */
const DECIDES = /^(gatewayclasses|gateways|listenersets|xlistenersets|namespaces|tenantpolicies)(\.|$)/;

export function readingScope(namespaces: readonly string[], unread: readonly string[]): ReadingScope {
  const isPart = namespaces.length > 0 || lacksDeciding(unread);
  return { sees: isPart ? "part" : unread.length > 0 ? "merge" : "all", namespaces, unread };
}

export function lacksDeciding(unread: readonly string[]): boolean {
  return unread.some((resource) => DECIDES.test(resource));
}
