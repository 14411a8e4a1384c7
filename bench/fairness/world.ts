/** Two tenants on one port: one that is about to misbehave, and one that is measured. */

import type { PlanItem, PortItem } from "../../src/plan/plan.ts";
import { DEFAULT_TENANT_LIMITS, type TenantLimits } from "../../src/plan/tenant-limits.ts";
import {
  backend,
  forwardTo,
  host,
  listener,
  port,
  rule,
} from "../../test/dataplanes/support/plan-builder.ts";
import type { BackendPorts } from "./backends.ts";

export const NOISY = "noisy.example";
export const QUIET = "quiet.example";

/** A tenth of the defaults: the flood needs to be a tenth as large to reach them. */
export const LIMITS: TenantLimits = {
  connections: DEFAULT_TENANT_LIMITS.connections / 10,
  requests: DEFAULT_TENANT_LIMITS.requests / 10,
  backendConnections: Math.floor(DEFAULT_TENANT_LIMITS.backendConnections / 10),
  bufferedBytes: Math.floor(DEFAULT_TENANT_LIMITS.bufferedBytes / 10),
};

export function planOf(number: number, ports: BackendPorts): readonly PlanItem[] {
  const http: PortItem = port(number);
  const noisy = listener("noisy", http, NOISY);
  const quiet = listener("quiet", http, QUIET);
  const retry = { attempts: 5, backoffMs: 10, codes: [503] };
  return [
    { type: "gateway", id: "gateway", gateway: http.gateway, tenantLimits: LIMITS },
    http,
    noisy,
    quiet,
    host(noisy, NOISY, [
      rule({ path: "/held", action: forwardTo("held") }),
      rule({ path: "/sink", action: forwardTo("sink") }),
      rule({ path: "/dead", action: forwardTo("dead", { retry }) }),
    ]),
    host(quiet, QUIET, [rule({ action: forwardTo("echo") })]),
    ...Object.entries(ports).map(([name, at]) => backend(name, [at])),
  ];
}
