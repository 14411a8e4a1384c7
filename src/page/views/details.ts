/** Everything that is known of one node. */
import type { ReadingScope } from "../../view/written/reading-scope.ts";
import { type Child, element, link } from "../dom/element.ts";
import { pill } from "../dom/pill.ts";
import { ruleText } from "../model/hostnames.ts";
import { fragmentOf, treeFragment } from "../model/place.ts";
import { backendName, counted, durationText, rowText } from "../model/row-text.ts";
import { isHeldByOthers } from "../model/scope-text.ts";
import { type ListenerNode, listenerNodeId, type TreeNode } from "../model/tree.ts";
import { blastButton } from "./blast-radius.ts";
import { quotaParts } from "./quotas.ts";
import { rolloutParts } from "./rollout.ts";
import type { ViewContext } from "./view.ts";

type Fact = readonly [name: string, ...value: readonly Child[]];

export function detailsOf(
  node: TreeNode | undefined,
  { world, live }: ViewContext,
  close: () => void,
): readonly Child[] {
  if (node === undefined) {
    return [
      element("h2", {}, "How to read this"),
      element(
        "p",
        {},
        "A Gateway has owners: itself, and the sets that teams bring. Each owner has listeners, a listener has routes, and a route has backends.",
      ),
      element(
        "p",
        {},
        "The number is the order of precedence. When two want the same port and hostname, the lower number holds it and the other is conflicted.",
      ),
      element(
        "p",
        { class: "keys" },
        element("kbd", {}, "/"),
        " searches, ",
        element("kbd", {}, "↑↓←→"),
        " move, ",
        element("kbd", {}, "Enter"),
        " opens.",
      ),
    ];
  }
  const { outline } = world;
  const { kind, title, state, note } = rowText({ node, isOpen: true }, outline, live.rates);
  const button = element(
    "button",
    { class: "close", type: "button", "aria-label": "Close the details" },
    "✕",
  );
  button.addEventListener("click", close);
  return [
    button,
    element("p", { class: "kind" }, kind),
    element("h2", {}, title),
    state !== undefined && element("p", {}, pill(state.tone, state.text)),
    note !== undefined && element("p", { class: `note ${note.tone}` }, note.text),
    factList(factsOf(node, world.scope)),
    ...(node.type === "gateway" ? rolloutParts(node.gateway, outline) : []),
    ...quotaParts(node),
    ...policies(node),
    ...conditions(node),
    (world.scope === undefined || world.scope.sees === "all") && blastButton(node),
  ];
}

function factList(facts: readonly Fact[]): Child {
  if (facts.length === 0) return undefined;
  return element(
    "dl",
    {},
    ...facts.flatMap(([name, ...value]) => [element("dt", {}, name), element("dd", {}, ...value)]),
  );
}

function factsOf(node: TreeNode, scope: ReadingScope | undefined): readonly Fact[] {
  switch (node.type) {
    case "gateway": {
      const { className, addresses, attachedListenerSets, isUnread } = node.gateway;
      if (isUnread === true) return [["Known of it", "only that objects of yours name it"]];
      return [
        ["Class", className],
        ["Addresses", addresses.map(({ value }) => value).join(", ") || "none"],
        ["Attached sets", String(attachedListenerSets)],
      ];
    }
    case "owner": {
      const { precedence, createdAt, attached, role } = node.owner;
      const age =
        createdAt === undefined
          ? "no creation time: names decide"
          : `${durationText((Date.now() - Date.parse(createdAt)) / 1000)} (${createdAt})`;
      return [
        [
          "Precedence",
          role === "root"
            ? "1, the Gateway itself comes first"
            : precedence > 0
              ? String(precedence)
              : "not shown",
        ],
        ["Age", age],
        ["Attached", attached ? "yes" : "no"],
      ];
    }
    case "listener":
      return listenerFacts(node, scope);
    case "route": {
      const { hostnames, rules, backends } = node.route;
      return [
        ["Hostnames", hostnames.map((name) => name || "any").join(", ")],
        ["Rules", String(rules)],
        ["Backends", counted(backends.length, "backend")],
      ];
    }
    case "backend":
      return [
        ["Service", backendName(node.backend)],
        ["Weight", String(node.weight)],
        [
          "Ready endpoints",
          node.backend.endpoints === undefined
            ? node.backend.isUnread === true
              ? "you may not read the Service"
              : "the reference does not resolve"
            : String(node.backend.endpoints),
        ],
      ];
    case "stray":
      return node.route.parents.map(({ parent, reason, message }) => [
        `${parent.kind} ${parent.namespace}/${parent.name}`,
        `${reason}: ${message}`,
      ]);
    case "stray-policy":
      return [["Reason", node.policy.reason]];
    case "group":
      return [["Number", String(node.count)]];
    case "foreign":
      return [["Served by", "another controller"]];
  }
}

function listenerFacts({ owner, listener }: ListenerNode, scope: ReadingScope | undefined): readonly Fact[] {
  if (listener.isUnread === true) return [["Routes", String(listener.routes.length)]];
  const { protocol, port, hostname, section, heldBy, certificates, routes } = listener;
  const scheme = protocol === "HTTPS" ? "https" : protocol === "HTTP" ? "http" : protocol.toLowerCase();
  const name = hostname === "" ? "anything.example.org" : hostname.replace(/^\*/, "some");
  const url = `${scheme}://${name}:${port}/`;
  return [
    ["Owner", `${owner.kind} ${owner.namespace}/${owner.name}`],
    ["Section", section],
    ["Listens", `${protocol} on port ${port}`],
    ["Hostname", hostname || "any"],
    ...(heldBy === undefined
      ? []
      : ([
          [
            "Held by",
            link(
              treeFragment(listenerNodeId(heldBy)),
              `${heldBy.kind} ${heldBy.namespace}/${heldBy.name}, listener ${heldBy.section}`,
            ),
          ],
          ["Decided by", ruleText(listener)],
        ] as const)),
    ...(isHeldByOthers(listener, scope) ? ([["Held by", "another team"]] as const) : []),
    ["Routes", String(routes.length)],
    ...certificates.map(
      ({ secret, names, notAfter, problem, isForHostname }): Fact => [
        "Certificate",
        element("span", { class: "strong" }, secret),
        element("br"),
        problem ?? `${names.join(", ")}; ends ${notAfter?.slice(0, 10) ?? ""}`,
        !isForHostname && pill("bad", "not for this hostname"),
      ],
    ),
    ...(scope === undefined || scope.sees === "all"
      ? ([["Try", link(fragmentOf({ view: "explain", parameters: { url } }), `Explain ${url}`)]] as const)
      : []),
  ];
}

/** Policies that are attached here; those of a Gateway reach all of its owners. */
function policies(node: TreeNode): readonly Child[] {
  const all =
    node.type === "owner"
      ? node.owner.policies
      : node.type === "listener"
        ? node.listener.policies
        : node.type === "route"
          ? node.route.policies
          : [];
  if (all.length === 0) return [];
  return [
    element("h3", {}, "Policies"),
    element(
      "ul",
      { class: "conditions" },
      ...all.map(({ kind, namespace, name, section, defaults, overrides, counts, conditions: verdicts }) => {
        const wrong = verdicts.filter(({ status }) => status === "False");
        const sets = [
          ...(defaults.length === 0 ? [] : [`defaults: ${defaults.join(", ")}`]),
          ...(overrides.length === 0 ? [] : [`overrides: ${overrides.join(", ")}`]),
        ].join("; ");
        return element(
          "li",
          {},
          element("span", { class: "strong" }, `${kind} ${namespace}/${name}`),
          section !== undefined && element("span", { class: "meta" }, ` at ${section}`),
          element("p", {}, sets),
          !counts && pill("warn", "an older policy has this target"),
          ...wrong.map(({ reason, message }) => element("p", { class: "note bad" }, `${reason}: ${message}`)),
        );
      }),
    ),
  ];
}

function conditions(node: TreeNode): readonly Child[] {
  const all =
    node.type === "gateway" ? node.gateway.conditions : node.type === "owner" ? node.owner.conditions : [];
  if (all.length === 0) return [];
  return [
    element("h3", {}, "Conditions"),
    element(
      "ul",
      { class: "conditions" },
      ...all.map(({ type, status, reason, message }) => {
        const isWrong =
          type === "Conflicted" || type === "OverlappingTLSConfig" ? status === "True" : status !== "True";
        return element(
          "li",
          {},
          pill(isWrong ? "bad" : "good", `${type}: ${status}`),
          element(
            "p",
            {},
            element("span", { class: "strong" }, reason),
            message === "" ? "" : ` — ${message}`,
          ),
        );
      }),
    ),
  ];
}
