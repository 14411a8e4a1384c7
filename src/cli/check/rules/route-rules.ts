/** Rules about routes: whether a parent accepts them, and whether requests reach their rules. */
import { type Key, keyFor } from "../../../api/key.ts";
import type { ParentReference } from "../../../api/references.ts";
import { GROUP_OF_KIND, type Kind, type Resource } from "../../../api/resource.ts";
import type { ListenerOverlap } from "../../../matching/overlap/overlap.ts";
import type { HostItem, ListenerItem } from "../../../plan/plan.ts";
import type { Rule, RuleOrigin } from "../../../plan/rule.ts";
import { isRoute } from "../../../view/is-route.ts";
import { heldRefusals } from "../../../view/pending-refusal.ts";
import type { CheckInput, CheckRule, Problem } from "./finding.ts";
import { rulePath } from "./places.ts";

export const routeWithoutParent: CheckRule = {
  id: "route-without-parent",
  severity: "error",
  summary: "A route names no parent, or one that is not here.",
  *find({ workspace: { engine, resources } }) {
    for (const [key, resource] of resources) {
      if (!isRoute(resource)) continue;
      const references = resource.spec.parentRefs ?? [];
      if (references.length === 0) {
        const remedy = "Name a Gateway, ListenerSet or XListenerSet in spec.parentRefs.";
        yield { at: key, path: ["spec"], message: "the route names no parent", remedy };
      }
      const verdict = engine.verdict(key);
      const judged = verdict?.type === "route" ? verdict.parents.map(({ parentRef }) => parentRef) : [];
      for (const [index, reference] of references.entries()) {
        // A Service as parent is for a service mesh (GAMMA), not for a Gateway.
        if (reference.kind === "Service" || judged.includes(reference)) continue;
        const namespace = reference.namespace ?? resource.metadata.namespace ?? "";
        if (exists(reference, namespace, resources)) continue;
        yield {
          at: key,
          path: ["spec", "parentRefs", index],
          message: `its parent is not here: ${reference.group}/${reference.kind} ${namespace}/${reference.name}`,
          remedy: remedyFor(reference, namespace, resources),
        };
      }
    }
  },
};

/** The parent exists, but is refused or of another controller: other rules report that. */
function exists(
  { group, kind, name }: ParentReference,
  namespace: string,
  resources: ReadonlyMap<Key, Resource>,
): boolean {
  return GROUP_OF_KIND[kind as Kind] === group && resources.has(keyFor(kind as Kind, namespace, name));
}

function remedyFor(
  { kind, name }: ParentReference,
  namespace: string,
  resources: ReadonlyMap<Key, Resource>,
): string {
  const meant = PARENT_KINDS.find((candidate) => resources.has(keyFor(candidate, namespace, name)));
  if (meant !== undefined) {
    return `There is ${meant} ${namespace}/${name}: write group ${GROUP_OF_KIND[meant]} and kind ${meant}.`;
  }
  return `Add the ${kind}, or correct group, kind, namespace and name of the reference.`;
}

const PARENT_KINDS = ["ListenerSet", "XListenerSet", "Gateway"] as const;

const REMEDIES: Readonly<Record<string, string>> = {
  NoMatchingParent: "Correct sectionName and port, or mend the parent.",
  NotAllowedByListeners:
    "Let the listener's allowedRoutes take this kind and namespace; the default is its own namespace alone.",
  NoMatchingListenerHostname: "Use a hostname that the listener covers.",
  Conflicted: "Use a hostname of its own, or move both routes to one kind.",
};

export const routeNotAccepted: CheckRule = {
  id: "route-not-accepted",
  severity: "error",
  summary: "A parent is there and does not take the route.",
  *find({ workspace: { engine, resources } }) {
    for (const [key] of resources) {
      const verdict = engine.verdict(key);
      if (verdict?.type !== "route") continue;
      for (const [index, { parentRef, conditions }] of verdict.parents.entries()) {
        const accepted = conditions.find(({ type }) => type === "Accepted");
        if (accepted?.status !== "False") continue;
        yield {
          at: key,
          path: ["spec", "parentRefs", index],
          message: `${parentRef.kind} ${parentRef.name}: ${accepted.reason}: ${accepted.message}`,
          remedy: REMEDIES[accepted.reason] ?? "Mend what the message says.",
        };
      }
    }
  },
};

export const ruleDropped: CheckRule = {
  id: "rule-dropped",
  severity: "error",
  summary: "A rule of a route cannot be served as written and is left out.",
  *find({ workspace: { engine, resources } }) {
    for (const [key] of resources) {
      const verdict = engine.verdict(key);
      if (verdict?.type !== "route") continue;
      const dropped = verdict.parents
        .flatMap(({ conditions }) => conditions)
        .find(({ type, status }) => type === "PartiallyInvalid" && status === "True");
      if (dropped === undefined) continue;
      const rule = Number(/Dropped Rule (\d+)/.exec(dropped.message)?.[1] ?? 0);
      yield {
        at: key,
        path: ["spec", "rules", rule],
        message: `${dropped.reason}: ${dropped.message}`,
        remedy: "Correct the rule; the others of the route are served.",
      };
    }
  },
};

export const ruleRefused: CheckRule = {
  id: "rule-refused",
  severity: "error",
  summary: "The data plane refuses a rule or a backend of a route, as its status says.",
  *find({ workspace: { resources } }) {
    for (const [key, resource] of resources) {
      if (!isRoute(resource)) continue;
      for (const { parentRef, reason, message } of heldRefusals(resource)) {
        yield {
          at: key,
          path: ["spec", "rules", Number(/rules\[(\d+)\]/.exec(message)?.[1] ?? 0)],
          message: `${parentRef.kind ?? "Gateway"} ${parentRef.name}: ${reason}: ${message}`,
          remedy: "Change what the message names; the others of the route are served.",
        };
      }
    }
  },
};

export const shadowedRule: CheckRule = {
  id: "shadowed-rule",
  severity: "warning",
  summary: "No request reaches a rule: an earlier one takes everything that it matches.",
  *find(input) {
    for (const { report } of input.overlaps) {
      for (const { host, rule, by, identical } of report.shadowed) {
        const how = identical
          ? "matches exactly the same and goes first"
          : "takes everything that it matches";
        yield ruleProblem(input, rule, {
          message: `nothing reaches rule ${rule.origin.rule} for ${shown(host)}: ${origin(by.origin)} ${how}`,
          remedy: "Remove it, or make its match more specific.",
        });
      }
    }
  },
};

export const unreachableHostname: CheckRule = {
  id: "unreachable-hostname",
  severity: "warning",
  summary:
    "No request reaches a route under a hostname: a more specific listener of the port takes all of it (isolation).",
  *find(input) {
    for (const { port, report } of input.overlaps) {
      for (const { host, by } of report.unreachable) {
        const rule = host.rules[0];
        if (rule === undefined) continue;
        yield ruleProblem(input, rule, {
          path: ["spec"],
          message: `nothing reaches it for ${shown(host)} on port ${port}: ${listener(by)} takes all of that name`,
          remedy: `Attach the route to ${by.owner.kind} ${by.owner.namespace}/${by.owner.name}, or give it other hostnames.`,
        });
      }
    }
  },
};

/** Between two tenants only: the Gateway's own listeners are the platform team's decision. */
export const wildcardCarved: CheckRule = {
  id: "name-out-of-wildcard",
  severity: "warning",
  summary: "A set of one namespace takes a hostname out of the wildcard that another namespace's set holds.",
  find: (input) => namesTaken(input, ({ listener: wide, by }) => !isGatewaysOwn(wide) && !isGatewaysOwn(by)),
};

function* namesTaken(
  { overlaps }: CheckInput,
  concerns: (overlap: ListenerOverlap) => boolean,
): Generator<Problem> {
  for (const { port, report } of overlaps) {
    for (const each of report.listeners) {
      const { listener: wide, by } = each;
      // A listener without hostname means every name that no other listener has.
      if (wide.hostname === "" || wide.owner.namespace === by.owner.namespace || !concerns(each)) continue;
      const { kind, namespace, name } = wide.owner;
      yield {
        at: keyFor(kind, namespace, name),
        path: ["spec", "listeners"],
        message: `listener ${wide.section} (${wide.hostname}, port ${port}) does not get ${by.hostname}: ${listener(by)} is more specific`,
        remedy:
          "As the API wants it; to keep the name, bring a listener with exactly that hostname first, or say at admission who may have it (docs/guides/tenants.md).",
      };
    }
  }
}

function isGatewaysOwn({ gateway, owner: { kind, namespace, name } }: ListenerItem): boolean {
  return kind === "Gateway" && `${namespace}/${name}` === gateway;
}

export const overlap: CheckRule = {
  id: "overlap",
  severity: "info",
  summary:
    "A listener, hostname or rule of one namespace takes a part of what another namespace's would take.",
  *find(input) {
    yield* namesTaken(input, ({ listener: wide, by }) => isGatewaysOwn(wide) || isGatewaysOwn(by));
    for (const { report } of input.overlaps) {
      for (const { host, by } of report.hosts) {
        const [rule, taker] = [host.rules[0], by.rules[0]];
        if (rule === undefined || taker === undefined) continue;
        yield ruleProblem(input, rule, {
          path: ["spec"],
          message: `for ${by.hostname} the rules of ${origin(taker.origin)} are asked before those of ${shown(host)}`,
          remedy: "As the API wants it; use a more specific hostname to come first.",
        });
      }
      for (const { host, rule, by } of report.rules) {
        yield ruleProblem(input, rule, {
          message: `${origin(by.origin)} takes a part of what rule ${rule.origin.rule} matches for ${shown(host)}`,
          remedy: "As the API wants it; make sure that both teams know.",
        });
      }
    }
  },
};

function ruleProblem(
  { workspace: { resources } }: CheckInput,
  { origin: { kind, namespace, name, rule, match } }: Rule,
  problem: Pick<Problem, "message" | "remedy" | "path">,
): Problem {
  const at = keyFor(kind, namespace, name);
  return { at, path: rulePath(rule, match, resources.get(at)), ...problem };
}

function origin({ kind, namespace, name, rule }: RuleOrigin): string {
  return `${kind} ${namespace}/${name} rule ${rule}`;
}

function listener({ owner, section, hostname }: ListenerItem): string {
  return `${owner.kind} ${owner.namespace}/${owner.name}, listener ${section} (${hostname || "any hostname"})`;
}

function shown({ hostname }: HostItem): string {
  return hostname === "" ? "any hostname" : `hostname ${hostname}`;
}
