import type { PortItem } from "../../../plan/plan.ts";
import { type EarlyHeader, httpManager, type ScriptShape } from "../messages/listener.ts";
import type { Message } from "../wire/protobuf.ts";
import { NORMAL_FILTER, SCOPE_HEADER, SNI_HEADER, TENANCY_FILTER } from "./names.ts";
import { normalScript } from "./tenancy-script.ts";

/** What clients say about themselves, or what belongs to one connection; nobody behind this proxy may believe it. */
const removed: readonly string[] = ["forwarded", "x-real-ip", "proxy-authorization", "proxy-authenticate"];

export const tenancyScripts: readonly ScriptShape[] = [
  { name: NORMAL_FILTER, code: normalScript },
  { name: TENANCY_FILTER },
];

export interface HttpOptions {
  readonly trustedHops: number;
  /** Absent: none is written. */
  readonly accessLog: ((port: PortItem) => Message) | undefined;
  /** Absent: there are no spans. */
  readonly tracing?: Message | undefined;
}

/** The same for every tenant of a port, now and later: nothing in it depends on listeners, hosts or rules. */
export function portHttpManager(port: PortItem, options: HttpOptions): Message {
  const { trustedHops, accessLog, tracing } = options;
  const trusted = trustedHops > 0;
  const peer = "%DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT%";
  const unlessTrusted = trusted ? "add-if-absent" : "overwrite";
  const early: readonly EarlyHeader[] = [
    ...removed.map((name) => ({ name })),
    { name: SCOPE_HEADER, value: `${port.port}/%REQ(:AUTHORITY)%` },
    {
      name: SNI_HEADER,
      ...(port.protocol === "tls" ? { value: `${port.port}/%REQUESTED_SERVER_NAME%` } : {}),
    },
    { name: "x-forwarded-for", value: peer, mode: trusted ? "append" : "overwrite" },
    { name: "x-forwarded-host", value: "%REQ(:AUTHORITY)%", mode: unlessTrusted },
    { name: "x-forwarded-port", value: String(port.port), mode: unlessTrusted },
  ];
  return httpManager({
    statPrefix: port.protocol === "tls" ? "https" : "http",
    early,
    scopeHeader: SCOPE_HEADER,
    scripts: tenancyScripts,
    trustedHops,
    accessLog: accessLog?.(port),
    tracing,
  });
}
