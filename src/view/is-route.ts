import { ROUTE_KINDS } from "../api/resource.ts";
import type { Route } from "../api/routes.ts";

export function isRoute(resource: { readonly kind: string }): resource is Route {
  return (ROUTE_KINDS as readonly string[]).includes(resource.kind);
}
