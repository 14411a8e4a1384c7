/**
 * The search: one pass over what exists for each keystroke. The text that a node is found by is
 * made once for each version of the state.
 */
import type { Outline, OutlineListener, OutlineOwner, OutlineRoute } from "../../view/outline.ts";
import type { Group, TreeNode } from "./tree.ts";

/** `self`: the node has the words. `below`: something under it has them. */
export type FilterMatch = "self" | "below" | undefined;

export type Filter = (node: TreeNode) => FilterMatch;

export class SearchIndex {
  readonly #outline: Outline;
  readonly #texts: Map<object, string> = new Map();

  constructor(outline: Outline) {
    this.#outline = outline;
  }

  /** Makes the texts before somebody searches: the first keystroke is then as quick as others. */
  prepare(): void {
    const { gateways, orphans, strayRoutes, strayPolicies, foreign, routes } = this.#outline;
    const owners = [...gateways.flatMap((gateway) => gateway.owners), ...orphans];
    const listeners = owners.flatMap((owner) => owner.listeners);
    for (const each of [gateways, owners, listeners, strayRoutes, strayPolicies, foreign, routes].flat())
      this.#textOf(each);
  }

  /** Undefined for a search without words, which finds everything. */
  filter(search: string): Filter | undefined {
    const words = wordsOf(search);
    if (words.length === 0) return undefined;
    const routes = this.#outline.routes.map((route) => this.#has(route, words));
    const inListener = new Map<OutlineListener, FilterMatch>();
    const inOwner = new Map<OutlineOwner, FilterMatch>();
    const ofListener = (listener: OutlineListener): FilterMatch =>
      memo(inListener, listener, () => {
        if (this.#has(listener, words)) return "self";
        return listener.routes.some((index) => routes[index]) ? "below" : undefined;
      });
    const ofOwner = (owner: OutlineOwner): FilterMatch =>
      memo(inOwner, owner, () => {
        if (this.#has(owner, words)) return "self";
        return owner.listeners.some((listener) => ofListener(listener) !== undefined) ? "below" : undefined;
      });
    return (node) => {
      switch (node.type) {
        case "gateway":
          if (this.#has(node.gateway, words)) return "self";
          return node.gateway.owners.some((owner) => ofOwner(owner) !== undefined) ? "below" : undefined;
        case "owner":
          return ofOwner(node.owner);
        case "listener":
          return ofListener(node.listener);
        case "route":
          return this.#has(node.route, words) ? "self" : undefined;
        case "backend":
          return this.#has(node.backend, words) ? "self" : undefined;
        case "stray":
          return this.#has(node.route, words) ? "self" : undefined;
        case "stray-policy":
          return this.#has(node.policy, words) ? "self" : undefined;
        case "foreign":
          return this.#has(node.ref, words) ? "self" : undefined;
        case "group":
          return this.#inGroup(node.group, words, ofOwner) ? "below" : undefined;
      }
    };
  }

  #inGroup(group: Group, words: readonly string[], ofOwner: (owner: OutlineOwner) => FilterMatch): boolean {
    if (group === "orphans") return this.#outline.orphans.some((owner) => ofOwner(owner) !== undefined);
    const { strayRoutes, strayPolicies, foreign } = this.#outline;
    const members: readonly object[] = { strays: strayRoutes, policies: strayPolicies, foreign }[group];
    return members.some((member) => this.#has(member, words));
  }

  #has(value: object, words: readonly string[]): boolean {
    const text = this.#textOf(value);
    return words.every((word) => text.includes(word));
  }

  #textOf(value: object): string {
    let text = this.#texts.get(value);
    if (text === undefined) {
      text = searchText(value as Searched, this.#outline).toLowerCase();
      this.#texts.set(value, text);
    }
    return text;
  }
}

export function wordsOf(search: string): readonly string[] {
  return search
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
}

/** Whether one text has all words of a search. */
export function hasWords(text: string, words: readonly string[]): boolean {
  const lower = text.toLowerCase();
  return words.every((word) => lower.includes(word));
}

function memo<K, V>(known: Map<K, V>, key: K, make: () => V): V {
  if (known.has(key)) return known.get(key) as V;
  const value = make();
  known.set(key, value);
  return value;
}

type Searched = Partial<OutlineListener> & Partial<OutlineRoute> & { readonly parents?: readonly Problem[] };

interface Problem {
  readonly reason: string;
}

/** Everything that people look for: names, hostnames, ports, states and reasons. */
function searchText(value: Searched, outline: Outline): string {
  const { kind, namespace, name, section, port, protocol, hostname, hostnames, state, reason } = value;
  const certificates = value.certificates?.flatMap(({ secret, names }) => [secret, ...names]) ?? [];
  const problems = [...(value.problems ?? []), ...(value.parents ?? [])].map((problem) => problem.reason);
  const backends = value.backends?.map(({ backend }) => outline.backends[backend]?.name) ?? [];
  const words = [
    kind,
    namespace && `${namespace}/${name}`,
    section,
    port && `:${port}`,
    protocol,
    hostname,
    state,
    reason,
  ];
  return [...words, ...(hostnames ?? []), ...certificates, ...problems, ...backends]
    .filter((word) => word !== undefined && word !== "")
    .join(" ");
}
