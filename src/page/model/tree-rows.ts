/** The rows of the tree in the order in which they are seen. */
import type { Outline } from "../../view/outline.ts";
import type { Filter } from "./filter.ts";
import { childrenOf, hasChildren, rootsOf, type TreeNode } from "./tree.ts";

export interface TreeRow {
  readonly node: TreeNode;
  /** 1 for the roots. */
  readonly level: number;
  readonly isOpen: boolean;
  /** Among its siblings, from 1. */
  readonly place: number;
  readonly siblings: number;
}

/** What somebody has opened (true) or closed (false) by hand. */
export type Opened = ReadonlyMap<string, boolean>;

/** Below this number of listeners everything fits: the whole path is open at the start. */
const SMALL_WORLD = 40;

export function treeRows(outline: Outline, opened: Opened, filter?: Filter): readonly TreeRow[] {
  const rows: TreeRow[] = [];
  const isSmall = listenerCount(outline) <= SMALL_WORLD;
  const add = (all: readonly TreeNode[], level: number, isFiltered: boolean): void => {
    const nodes = isFiltered ? all.filter((node) => filter?.(node) !== undefined) : all;
    for (const [index, node] of nodes.entries()) {
      const match = isFiltered ? filter?.(node) : undefined;
      const isOpen =
        hasChildren(node) && (opened.get(node.id) ?? (match === "below" || isOpenAtStart(node, isSmall)));
      rows.push({ node, level, isOpen, place: index + 1, siblings: nodes.length });
      // Under a node that was found itself everything is shown; above it only what leads there.
      if (isOpen) add(childrenOf(outline, node), level + 1, match === "below");
    }
  };
  add(rootsOf(outline), 1, filter !== undefined);
  return rows;
}

function isOpenAtStart({ type }: TreeNode, isSmall: boolean): boolean {
  return type === "gateway" || type === "group" || (isSmall && (type === "owner" || type === "listener"));
}

function listenerCount({ gateways }: Outline): number {
  let count = 0;
  for (const { owners } of gateways) for (const { listeners } of owners) count += listeners.length;
  return count;
}

/** Ids of the nodes above one, from its own id; a node is found even where all is closed. */
export function pathTo(outline: Outline, id: string): readonly TreeNode[] | undefined {
  const search = (nodes: readonly TreeNode[]): readonly TreeNode[] | undefined => {
    for (const node of nodes) {
      if (node.id === id) return [node];
      if (!mayContain(node, id)) continue;
      const below = search(childrenOf(outline, node));
      if (below !== undefined) return [node, ...below];
    }
    return undefined;
  };
  return search(rootsOf(outline));
}

/** Ids say what they are below of, so most of the tree is not walked. */
function mayContain(node: TreeNode, id: string): boolean {
  switch (node.type) {
    case "gateway":
    case "group":
      return true;
    case "owner":
      return id.startsWith(`listener:${node.id.slice("owner:".length)}#`);
    default:
      return id.startsWith(`${node.id}>`);
  }
}
