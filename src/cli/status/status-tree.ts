/** The merged state as a tree. */
import type {
  BackendView,
  CertificateView,
  GatewayView,
  ListenerView,
  MergedState,
  OwnerView,
  PolicyView,
  QuotaView,
  RouteView,
} from "../../view/merged-state.ts";
import { describe, describeListener, nameOf } from "../../view/merged-state.ts";
import { linesOf, type Terminal } from "../foundation/terminal.ts";
import { type NoteOf, noteText } from "./pending-programming.ts";
import { policyWord, stateWord } from "./state-word.ts";

interface Node {
  readonly text: string;
  readonly children: readonly Node[];
}

export function statusTree(state: MergedState, terminal: Terminal, noteOf: NoteOf): string {
  const roots = [
    ...state.gateways.map((gateway) => gatewayNode(gateway, terminal, noteOf)),
    ...group(
      "Attached to nothing",
      state.orphans.map((owner) => ownerNode(owner, terminal)),
      terminal,
    ),
    ...group(
      "Routes that no listener has taken",
      state.strayRoutes.map((route) => ({
        text: describe(route),
        children:
          route.parents.length === 0
            ? [leaf("names no parent")]
            : route.parents.map(({ parent, reason, message }) =>
                leaf(`${terminal.style("yellow", reason)} at ${describe(parent)}: ${message}`),
              ),
      })),
      terminal,
    ),
    ...group(
      "Targets of policies that are not served",
      state.strayPolicies.map((policy) => {
        const { target, reason, message } = policy;
        const section = target.section === "" ? "" : `, ${target.section}`;
        const text = `${terminal.style("yellow", reason)} at ${describe(target)}${section}: ${message}`;
        return { text: describe(policy), children: [leaf(text)] };
      }),
      terminal,
    ),
    ...group(
      "Of other controllers",
      state.foreign.map((ref) => leaf(describe(ref))),
      terminal,
    ),
  ];
  if (roots.length === 0) return "There is no Gateway, set or route here.\n";
  return roots.map((root) => linesOf([root.text, ...branches(root.children)])).join("\n");
}

function branches(nodes: readonly Node[]): string[] {
  return nodes.flatMap(({ text, children }, index) => {
    const last = index === nodes.length - 1;
    return [
      `${last ? "└─" : "├─"} ${text}`,
      ...branches(children).map((line) => `${last ? "   " : "│  "}${line}`),
    ];
  });
}

function group(title: string, children: readonly Node[], { style }: Terminal): Node[] {
  return children.length === 0 ? [] : [{ text: style("bold", title), children }];
}

function leaf(text: string): Node {
  return { text, children: [] };
}

function gatewayNode(gateway: GatewayView, terminal: Terminal, noteOf: NoteOf): Node {
  const { style } = terminal;
  const note = noteOf(gateway);
  const sets = gateway.attachedListenerSets;
  const details =
    gateway.isUnread === true
      ? ["may not be read"]
      : [
          `class ${gateway.className}`,
          `${sets} ${sets === 1 ? "set" : "sets"} attached`,
          ...gateway.addresses.map(({ value }) => value),
        ];
  return {
    text: `${style("bold", describe(gateway))}  ${style("dim", details.join(", "))}`,
    children: [
      ...(note === undefined ? [] : [leaf(style(note.isProgrammed ? "yellow" : "red", noteText(note)))]),
      // They reach every owner, so they stand above all.
      ...gateway.owners
        .filter(({ role }) => role === "root")
        .flatMap(({ policies }) => policies.map((policy) => policyNode(policy, terminal))),
      ...gateway.owners.map((owner) => ownerNode(owner, terminal)),
    ],
  };
}

function ownerNode(owner: OwnerView, terminal: Terminal): Node {
  const { style } = terminal;
  const role = { root: "the Gateway itself", set: "set", child: "child Gateway" }[owner.role];
  const created = owner.createdAt === undefined ? "no creation time" : `created ${owner.createdAt}`;
  const place = owner.precedence === 0 ? "" : `#${owner.precedence} `;
  const text = `${place}${style("bold", describe(owner))}  ${style("dim", `${role}, ${created}`)}`;
  const accepted = owner.conditions.find(({ type }) => type === "Accepted");
  if (!owner.attached) {
    const why = `not attached: ${accepted?.reason ?? "Unknown"}: ${accepted?.message ?? ""}`;
    return {
      text,
      children: [
        leaf(style("red", why)),
        ...owner.listeners.map((listener) => leaf(listenerText(listener, terminal))),
      ],
    };
  }
  const policies = owner.role === "root" ? [] : owner.policies;
  const listeners = owner.listeners.map((listener) => listenerNode(listener, terminal));
  return {
    text,
    children: [
      ...policies.map((policy) => policyNode(policy, terminal)),
      ...(listeners.length === 0 ? [leaf(style("dim", "no listeners of its own"))] : listeners),
    ],
  };
}

function policyNode(policy: PolicyView, terminal: Terminal): Node {
  const { section, overrides, defaults, conditions } = policy;
  const fields = [
    ...(overrides.length === 0 ? [] : [`overrides ${overrides.join(", ")}`]),
    ...(defaults.length === 0 ? [] : [`defaults ${defaults.join(", ")}`]),
    ...conditions.flatMap(({ type, message }) => (type === "Enforced" ? [message] : [])),
  ];
  const rule = section === undefined ? "" : ` for ${section}`;
  // What a TenantPolicy refuses stands in the line already.
  const wrong = conditions.find(({ type, status }) => status !== "True" && type !== "Enforced");
  return {
    text: `${describe(policy)}${rule}  ${terminal.style("dim", fields.join("; "))}  ${policyWord(policy, terminal)}`,
    children: [
      ...(wrong === undefined ? [] : [leaf(wrong.message)]),
      ...(policy.quotas ?? []).map((quota) => leaf(quotaText(quota, terminal))),
    ],
  };
}

/** `namespace team-a  listeners 9 of 10, routes 3 of 50  rule teams` */
function quotaText({ namespace, rule, resources }: QuotaView, { style }: Terminal): string {
  const parts = resources.map(({ resource, used, limit }) => {
    const text = `${resource} ${used} of ${limit}`;
    if (used > limit) return style("red", text);
    return used > 0 && used * 10 >= limit * 9 ? style("yellow", text) : text;
  });
  const of = rule === undefined ? "" : `  ${style("dim", `rule ${rule}`)}`;
  return `namespace ${namespace}  ${parts.join(", ")}${of}`;
}

function listenerText(listener: ListenerView, terminal: Terminal): string {
  const { section, protocol, port, hostname, isUnread } = listener;
  if (isUnread === true) return `${section || "its listeners"}  ${terminal.style("dim", "may not be read")}`;
  const nameless = hostname === "" && (protocol === "TCP" || protocol === "UDP");
  const where = `${protocol} :${port}${nameless ? "" : ` ${hostname || "(any hostname)"}`}`;
  return `${section}  ${where}  ${stateWord(listener, terminal)}`;
}

function listenerNode(listener: ListenerView, terminal: Terminal): Node {
  const { style } = terminal;
  const { heldBy, message, unresolved, certificates, routes, state } = listener;
  return {
    text: listenerText(listener, terminal),
    children: [
      ...(message === undefined ? [] : [leaf(message)]),
      ...(heldBy === undefined ? [] : [leaf(`held by ${style("bold", describeListener(heldBy))}`)]),
      ...(unresolved === undefined
        ? []
        : [leaf(style("yellow", `${unresolved.reason}: ${unresolved.message}`))]),
      ...certificates.map((certificate) => leaf(certificateText(certificate, terminal))),
      ...listener.policies.map((policy) => policyNode(policy, terminal)),
      ...(routes.length === 0 && state === "serving" ? [leaf(style("dim", "no routes"))] : []),
      ...routes.map((route) => routeNode(route, terminal)),
    ],
  };
}

export function certificateText(
  { secret, names, notAfter, problem }: CertificateView,
  { style }: Terminal,
): string {
  if (problem !== undefined) return `certificate ${secret}: ${style("red", problem)}`;
  return `certificate ${secret}  ${style("dim", `${names.join(", ")}, until ${notAfter?.slice(0, 10)}`)}`;
}

function routeNode(route: RouteView, terminal: Terminal): Node {
  const { style } = terminal;
  const hostnames = route.hostnames.filter((hostname) => hostname !== "");
  return {
    text: `${describe(route)}${hostnames.length === 0 ? "" : `  ${hostnames.join(", ")}`}`,
    children: [
      ...route.problems.map(({ reason, message }) => leaf(style("yellow", `${reason}: ${message}`))),
      ...route.policies.map((policy) => policyNode(policy, terminal)),
      ...route.backends.map((backend) => ({
        text: backendText(backend),
        children: (backend.policies ?? []).map((policy) => policyNode(policy, terminal)),
      })),
    ],
  };
}

function backendText(backend: BackendView): string {
  const port = backend.port === undefined ? "" : `:${backend.port}`;
  const weight = backend.weight === 1 ? "" : `, weight ${backend.weight}`;
  const { endpoints, isUnread } = backend;
  const ready =
    endpoints === undefined
      ? isUnread === true
        ? "may not be read"
        : "does not resolve"
      : `${endpoints} ${endpoints === 1 ? "endpoint" : "endpoints"}`;
  return `${backend.kind} ${nameOf(backend)}${port}  ${ready}${weight}`;
}
