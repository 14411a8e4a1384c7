/** Keys of a tree, as the ARIA Authoring Practices Guide has them. */
import { hasChildren } from "../model/tree.ts";
import type { TreeRow } from "../model/tree-rows.ts";

export interface TreeMove {
  /** The node to choose. */
  readonly choose?: string;
  /** Whether the chosen node is to be open. */
  readonly open?: boolean;
}

export function moveInTree(
  key: string,
  rows: readonly TreeRow[],
  at: number,
  pageSize: number,
): TreeMove | undefined {
  const row = rows[at];
  const choose = (index: number): TreeMove => {
    const node = rows[Math.max(0, Math.min(rows.length - 1, index))]?.node;
    return node === undefined ? {} : { choose: node.id };
  };
  switch (key) {
    case "ArrowDown":
      return choose(at + 1);
    case "ArrowUp":
      return choose(Math.max(0, at - 1));
    case "Home":
      return choose(0);
    case "End":
      return choose(rows.length - 1);
    case "PageDown":
      return choose(at + pageSize);
    case "PageUp":
      return choose(at - pageSize);
    case "ArrowRight":
      if (row === undefined) return choose(0);
      if (!hasChildren(row.node)) return {};
      return row.isOpen ? choose(at + 1) : { open: true };
    case "ArrowLeft":
      if (row === undefined) return choose(0);
      return row.isOpen ? { open: false } : choose(parentIndex(rows, at));
    case "Enter":
    case " ":
      return row === undefined ? choose(0) : { open: !row.isOpen };
    default:
      return undefined;
  }
}

function parentIndex(rows: readonly TreeRow[], at: number): number {
  const level = rows[at]?.level ?? 1;
  for (let index = at - 1; index >= 0; index--) if ((rows[index]?.level ?? 0) < level) return index;
  return at;
}
