/** Compares which owner serves each (port, hostname) before and after a change. */
import type { Key } from "../../api/key.ts";
import type { PlanItem } from "../../plan/plan.ts";
import type { Workspace } from "../workspace/workspace.ts";
import { placeOf } from "./check.ts";
import { CHANGE_RULES } from "./rule-table.ts";
import type { Finding } from "./rules/finding.ts";

interface Holder {
  readonly gateway: string;
  readonly port: number;
  readonly protocol: string;
  readonly hostname: string;
  readonly owner: Key;
  readonly section: string;
}

export interface HostnameChange {
  readonly change: "gained" | "lost" | "owner-changed";
  readonly gateway: string;
  readonly port: number;
  readonly hostname: string;
  readonly before?: string;
  readonly after?: string;
}

export function compareHostnames(
  before: Workspace,
  after: Workspace,
): { changes: HostnameChange[]; findings: Finding[] } {
  const old = holders(before.engine.plan());
  const now = holders(after.engine.plan());
  const changes: HostnameChange[] = [];
  const findings: Finding[] = [];
  for (const id of [...new Set([...old.keys(), ...now.keys()])].sort()) {
    const [was, is] = [old.get(id), now.get(id)];
    const any = is ?? was;
    if (any === undefined || was?.owner === is?.owner) continue;
    const change = is === undefined ? "lost" : was === undefined ? "gained" : "owner-changed";
    const { gateway, port, hostname } = any;
    changes.push({
      change,
      gateway,
      port,
      hostname,
      ...(was === undefined ? {} : { before: shown(was) }),
      ...(is === undefined ? {} : { after: shown(is) }),
    });
    findings.push(finding(change, { was, is, any }, { before, after }));
  }
  return { changes, findings };
}

function holders(plan: Iterable<PlanItem>): Map<string, Holder> {
  const ports = new Map<string, { readonly port: number; readonly transport: string }>();
  const listeners: Extract<PlanItem, { type: "listener" }>[] = [];
  for (const item of plan) {
    if (item.type === "port") ports.set(item.id, item);
    else if (item.type === "listener") listeners.push(item);
  }
  const found = new Map<string, Holder>();
  for (const { gateway, port: portId, hostname, protocol, owner, section } of listeners) {
    const { port = 0, transport = "tcp" } = ports.get(portId) ?? {};
    const key = `${owner.kind}/${owner.namespace}/${owner.name}`;
    found.set(`${gateway} ${transport}/${port} ${hostname}`, {
      gateway,
      port,
      protocol,
      hostname,
      owner: key,
      section,
    });
  }
  return found;
}

function shown({ owner, section }: Holder): string {
  const [kind, namespace, name] = owner.split("/");
  return `${kind} ${namespace}/${name}, listener ${section}`;
}

function finding(
  change: HostnameChange["change"],
  {
    was,
    is,
    any,
  }: { readonly was: Holder | undefined; readonly is: Holder | undefined; readonly any: Holder },
  { before, after }: { readonly before: Workspace; readonly after: Workspace },
): Finding {
  const rule = `hostname-${change}` as const;
  const what = `${any.hostname || "any hostname"} on port ${any.port} of Gateway ${any.gateway}`;
  const place =
    is === undefined ? placeOf(before, any.owner) : placeOf(after, is.owner, ["spec", "listeners"]);
  const texts = {
    gained: [`${what} is new: ${is && shown(is)}`, "Nothing to do if that is meant."],
    lost: [
      `${what} is lost: it was served by ${was && shown(was)}`,
      "Keep the listener, or tell whoever uses the name.",
    ],
    "owner-changed": [
      `${what} goes from ${was && shown(was)} to ${is && shown(is)}`,
      "Make sure that both owners agree; otherwise use another hostname.",
    ],
  } as const;
  const [message, remedy] = texts[change];
  const [kind, namespace, name] = any.owner.split("/");
  return {
    rule,
    severity: CHANGE_RULES[rule].severity,
    ...place,
    owner: `${kind} ${namespace}/${name}`,
    message,
    remedy,
  };
}
