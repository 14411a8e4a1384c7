/** The merged table of every port: who holds a hostname, who wanted it too, and what decided. */
import type { Outline, OutlineListener, OutlineOwner } from "../../view/outline.ts";
import { hasWords, wordsOf } from "./filter.ts";

export interface Claim {
  readonly owner: OutlineOwner;
  readonly listener: OutlineListener;
}

export interface HostnameRow {
  readonly id: string;
  /** `namespace/name` */
  readonly gateway: string;
  readonly port: number;
  readonly transport: "tcp" | "udp";
  /** Empty for every hostname. */
  readonly hostname: string;
  readonly holder: Claim | undefined;
  readonly others: readonly Claim[];
  /** Patterns of the port that also match these names, the narrowest first. */
  readonly coveredBy: readonly string[];
}

export interface PortTable {
  readonly id: string;
  readonly gateway: string;
  readonly port: number;
  readonly transport: "tcp" | "udp";
  readonly protocols: readonly string[];
  readonly rows: readonly HostnameRow[];
}

export function portTables({ gateways }: Outline): readonly PortTable[] {
  return gateways.flatMap(({ namespace, name, owners }) => {
    const gateway = `${namespace}/${name}`;
    const claims = owners.flatMap((owner) =>
      owner.listeners
        .filter(({ isUnread }) => isUnread !== true)
        .map((listener): Claim => ({ owner, listener })),
    );
    const ports = Map.groupBy(claims, ({ listener }) => `${transportOf(listener)}/${listener.port}`);
    return [...ports]
      .map(([port, ofPort]) => portTable(gateway, port, ofPort))
      .sort((a, b) => a.port - b.port || a.transport.localeCompare(b.transport));
  });
}

function portTable(gateway: string, at: string, claims: readonly Claim[]): PortTable {
  const [transport = "tcp", port = "0"] = at.split("/") as ["tcp" | "udp", string];
  const byName = Map.groupBy(claims, ({ listener }) => listener.hostname);
  const patterns = new Set(
    [...byName].filter(([, ofName]) => ofName.some(isHolder)).map(([hostname]) => hostname),
  );
  const rows = [...byName].map(([hostname, ofName]): HostnameRow => {
    const holder = ofName.find(isHolder);
    return {
      id: `${gateway}|${at}|${hostname}`,
      gateway,
      port: Number(port),
      transport,
      hostname,
      holder,
      others: ofName.filter((claim) => claim !== holder),
      coveredBy: coverings(hostname).filter((pattern) => patterns.has(pattern)),
    };
  });
  return {
    id: `${gateway}|${at}`,
    gateway,
    port: Number(port),
    transport,
    protocols: [...new Set(claims.filter(isHolder).map(({ listener }) => listener.protocol))].sort(),
    rows: rows.sort((a, b) => compare(sortKey(a.hostname), sortKey(b.hostname))),
  };
}

/** A refused or conflicted listener holds nothing. */
export function isHolder({ listener: { state } }: Claim): boolean {
  return state !== "conflicted" && state !== "refused";
}

/** `*.b.c`, `*.c` and the empty pattern for `a.b.c`: as plan/hostname.ts matches them. */
function coverings(hostname: string): readonly string[] {
  if (hostname === "") return [];
  const labels = hostname.split(".");
  const wider = labels.slice(1).map((_label, at) => `*.${labels.slice(at + 1).join(".")}`);
  return [...wider.filter((pattern) => pattern !== hostname), ""];
}

/** Names of one domain stand together, the wildcard before the names that it covers. */
function sortKey(hostname: string): string {
  if (hostname === "") return "";
  return hostname.split(".").reverse().join(".").replace("*", " ");
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function transportOf({ protocol }: OutlineListener): "tcp" | "udp" {
  return protocol === "UDP" ? "udp" : "tcp";
}

export function findHostnames(tables: readonly PortTable[], search: string): readonly PortTable[] {
  const words = wordsOf(search);
  if (words.length === 0) return tables;
  return tables
    .map((table) => ({ ...table, rows: table.rows.filter((row) => hasWords(rowText(row), words)) }))
    .filter(({ rows }) => rows.length > 0);
}

function rowText({ hostname, port, holder, others }: HostnameRow): string {
  const claims = [...(holder === undefined ? [] : [holder]), ...others].map(
    ({ owner, listener }) =>
      `${owner.kind} ${owner.namespace}/${owner.name} ${listener.section} ${listener.state} ${listener.reason ?? ""}`,
  );
  return [hostname || "*", `:${port}`, ...claims].join(" ");
}

/** The rule of precedence in a sentence (GEP-1713, Listener Precedence). */
export function ruleText({ decidedBy, state, reason }: OutlineListener): string {
  switch (decidedBy) {
    case "gateway":
      return "the Gateway’s own listeners come first";
    case "age":
      return "the older resource comes first";
    case "name":
      return "same age: first in the alphabet by namespace/name";
    case "kind":
      return "same name: ListenerSet, then XListenerSet, then Gateway";
    default:
      return state === "conflicted" ? "the same twice in one resource: neither" : (reason ?? state);
  }
}
