/**
 * An ingress document for a tunnel that runs without our proxy: cloudflared itself chooses the
 * service, by its own rules.
 *
 * Its rules are tried from the top and the first that matches serves; a hostname is exact or
 * `*.suffix` over any number of labels; there is no fallthrough from one hostname to a wider one. A
 * plan says more, so for each hostname pattern that a listener or a route names, most specific
 * first, the document has
 *   - the rules of the listener that the pattern belongs to (isolation), from the most specific
 *     route hostname to the widest,
 *   - and then 404, so that no wider pattern of another tenant takes what this one leaves open.
 * The last rule is for everything else. What cloudflared cannot do (it sees Host and path, and
 * sends a request unchanged to one service) is refused rule by rule with the reason; nothing is
 * served differently in silence.
 */
import type { BackendItem } from "../../plan/backend.ts";
import { compareSpecificity, coversPattern } from "../../plan/hostname.ts";
import type { HostItem, ItemId, ListenerItem, PlanItem } from "../../plan/plan.ts";
import type { Rule, RuleOrigin } from "../../plan/rule.ts";
import { leadsToHttps } from "./client-scheme.ts";
import type { IngressRule } from "./cloudflare/tunnel-configuration.ts";
import { holderOf } from "./name-holders.ts";
import { pathExpression } from "./path-expression.ts";
import { serviceOf } from "./rule-service.ts";

export interface IngressDocument {
  readonly ingress: readonly IngressRule[];
  readonly refusals: readonly IngressRefusal[];
}

/** What the document does not say. */
export interface IngressRefusal {
  /** A rule of a route, or a listener, or the document itself. */
  readonly subject: RuleOrigin | { readonly listener: ItemId } | "document";
  readonly message: string;
}

export interface DocumentOptions {
  /** Where a connector finds a backend, without a scheme: `name.namespace.svc:80`. */
  readonly authorityOf: (backend: BackendItem) => string;
}

/** What the API takes. */
export const MAX_RULES = 1_000;

const NOT_FOUND = "http_status:404";
const CLOSED = "http_status:500";

export function ingressDocument(
  items: Iterable<PlanItem>,
  gateway: string,
  options: DocumentOptions,
): IngressDocument {
  const plan = sorted(items, gateway);
  const refusals = new Refusals();
  const held = heldListeners(plan, refusals);
  const patterns = new Set<string>();
  for (const listener of held) {
    patterns.add(listener.hostname);
    for (const host of plan.hosts.get(listener.id) ?? []) patterns.add(host.hostname);
  }
  const ingress: IngressRule[] = [];
  const ordered = [...patterns].sort((a, b) => compareSpecificity(a, b) || (a < b ? -1 : 1));
  for (const pattern of ordered) {
    if (pattern === "") continue;
    ingress.push(...rulesFor(pattern, { plan, held, refusals, options }));
  }
  // Without a hostname the last of these is the document's own last rule.
  ingress.push(
    ...(patterns.has("") ? rulesFor("", { plan, held, refusals, options }) : [{ service: NOT_FOUND }]),
  );
  if (ingress.length > MAX_RULES) {
    refusals.add("document", `it has ${ingress.length} rules, and a tunnel takes ${MAX_RULES}`);
  }
  return { ingress, refusals: refusals.list };
}

interface Sorted {
  readonly listeners: readonly ListenerItem[];
  readonly validated: ReadonlySet<ItemId>;
  readonly hosts: ReadonlyMap<ItemId, readonly HostItem[]>;
  readonly backends: ReadonlyMap<ItemId, BackendItem>;
}

function sorted(items: Iterable<PlanItem>, gateway: string): Sorted {
  const listeners: ListenerItem[] = [];
  const validated = new Set<ItemId>();
  const hosts = new Map<ItemId, HostItem[]>();
  const backends = new Map<ItemId, BackendItem>();
  for (const item of items) {
    if (item.gateway !== gateway) continue;
    if (item.type === "listener") listeners.push(item);
    else if (item.type === "host") hosts.set(item.listener, [...(hosts.get(item.listener) ?? []), item]);
    else if (item.type === "backend") backends.set(item.id, item);
    else if (item.type === "port" && item.clientValidation !== undefined) validated.add(item.id);
  }
  return { listeners, validated, hosts, backends };
}

/** One listener per hostname, as behind our own proxy; what the others ask for is refused. */
function heldListeners({ listeners, validated, hosts }: Sorted, refusals: Refusals): readonly ListenerItem[] {
  const byName = new Map<string, ListenerItem[]>();
  for (const listener of listeners) {
    if (listener.protocol !== "HTTP" && listener.protocol !== "HTTPS") {
      refusals.add(
        { listener: listener.id },
        `protocol ${listener.protocol}: the document carries HTTP alone`,
      );
    } else if (validated.has(listener.port) || listener.tls?.clientValidation !== undefined) {
      refusals.add({ listener: listener.id }, "client certificates cannot be asked for behind a tunnel");
    } else byName.set(listener.hostname, [...(byName.get(listener.hostname) ?? []), listener]);
  }
  const held: ListenerItem[] = [];
  for (const rivals of byName.values()) {
    const holder = holderOf(rivals);
    if (holder === undefined) continue;
    held.push(holder.primary);
    for (const listener of rivals) {
      if (listener === holder.twin) refuseTwin(listener, holder.primary, hosts, refusals);
      else if (listener !== holder.primary) {
        refusals.add({ listener: listener.id }, "another listener comes first and has the same hostname");
      }
    }
  }
  return held;
}

/**
 * Routes that are at both listeners are served, and redirects to https are the edge's business; the
 * rest cannot be told apart.
 */
function refuseTwin(
  twin: ListenerItem,
  primary: ListenerItem,
  hosts: Sorted["hosts"],
  refusals: Refusals,
): void {
  const served = new Set(
    (hosts.get(primary.id) ?? []).flatMap(({ rules }) => rules.map(({ origin }) => placeOf(origin))),
  );
  for (const { rules } of hosts.get(twin.id) ?? []) {
    for (const { origin, action } of rules) {
      if (served.has(placeOf(origin))) continue;
      const message =
        action.type === "redirect" && leadsToHttps(action)
          ? "a redirect to https: cloudflared cannot redirect; turn on Always Use HTTPS for the zone"
          : "a rule of an HTTP listener beside an HTTPS one of the same hostname: cloudflared cannot tell http from https";
      refusals.add(origin, message);
    }
  }
}

interface Context {
  readonly plan: Sorted;
  readonly held: readonly ListenerItem[];
  readonly refusals: Refusals;
  readonly options: DocumentOptions;
}

function rulesFor(pattern: string, { plan, held, refusals, options }: Context): readonly IngressRule[] {
  const hostname = pattern === "" ? {} : { hostname: pattern };
  const end = { ...hostname, service: NOT_FOUND };
  const listener = held
    .filter((candidate) => coversPattern(candidate.hostname, pattern))
    .sort((a, b) => compareSpecificity(a.hostname, b.hostname))[0];
  if (listener === undefined) return [end];
  const hosts = (plan.hosts.get(listener.id) ?? [])
    .filter((host) => coversPattern(host.hostname, pattern))
    .sort((a, b) => compareSpecificity(a.hostname, b.hostname));
  const rules: IngressRule[] = [];
  for (const rule of hosts.flatMap((host) => host.rules)) {
    if (rule.guards !== undefined) refusals.add(rule.origin, GUARDED);
    const written = writtenRule(rule, plan.backends, options);
    if ("problem" in written) {
      refusals.add(rule.origin, written.problem);
      // Which paths it guards cannot be said: nothing behind it may be open.
      if (rule.guards !== undefined) return [...rules, { ...hostname, service: CLOSED }];
      continue;
    }
    rules.push({ ...hostname, ...written.rule });
    // Whatever comes after a rule for every path is never reached.
    if (written.rule.path === undefined) return rules;
  }
  return [...rules, end];
}

const GUARDED = "a TrafficPolicy: cloudflared cannot apply it, so the rule answers 500";

type Written = { readonly rule: IngressRule } | { readonly problem: string };

function writtenRule(rule: Rule, backends: Sorted["backends"], options: DocumentOptions): Written {
  const path = pathExpression(rule.match.path);
  if ("problem" in path) return path;
  // Left out, its requests would go to a wider rule that nothing may guard.
  const service =
    rule.guards === undefined ? serviceOf(rule, backends, options.authorityOf) : { service: CLOSED };
  if ("problem" in service) return service;
  return { rule: { ...(path.pattern === undefined ? {} : { path: path.pattern }), ...service } };
}

function placeOf({ kind, namespace, name, rule, match }: RuleOrigin): string {
  return `${kind}/${namespace}/${name}/${rule}/${match}`;
}

/** Each subject is refused once with one reason, however many hostnames it stands under. */
class Refusals {
  readonly #found: Map<string, IngressRefusal> = new Map();

  add(subject: IngressRefusal["subject"], message: string): void {
    const key =
      typeof subject === "string" ? subject : "listener" in subject ? subject.listener : placeOf(subject);
    if (!this.#found.has(key)) this.#found.set(key, { subject, message });
  }

  get list(): readonly IngressRefusal[] {
    return [...this.#found.values()];
  }
}
