/**
 * Makes elements. Text becomes text nodes and nothing else: what comes from an object can never
 * become markup.
 */

export type Child = Node | string | undefined | false;

type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

export function element<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...present(children));
  return made;
}

export function replaceChildren(parent: Element, ...children: readonly Child[]): void {
  parent.replaceChildren(...present(children));
}

const signatures = new WeakMap<Element, string>();

/** Draws anew only what says something else: focus and selection stay where they are. */
export function redraw(parent: Element, signature: string, draw: () => readonly Child[]): void {
  if (signatures.get(parent) === signature) return;
  signatures.set(parent, signature);
  replaceChildren(parent, ...draw());
}

export function link(href: string, text: string, className = "link"): HTMLAnchorElement {
  return element("a", { href, class: className }, text);
}

function present(children: readonly Child[]): (Node | string)[] {
  return children.filter((child) => child !== undefined && child !== false);
}

/** An element of the page's own HTML. */
export function part<T extends Element>(selector: string, root: ParentNode = document): T {
  const found = root.querySelector<T>(selector);
  if (found === null) throw new Error(`the page has no ${selector}`);
  return found;
}
