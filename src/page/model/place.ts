/** What the page shows, as the fragment of its URL: every state can be shared. */

export const VIEWS = ["tree", "hostnames", "explain", "certificates", "timeline"] as const;
export type ViewName = (typeof VIEWS)[number];

export interface Place {
  readonly view: ViewName;
  /** Parameters of the view; one may have several values. */
  readonly parameters: Readonly<Record<string, string | readonly string[]>>;
}

export function readPlace(fragment: string): Place {
  const [path = "", query = ""] = fragment.replace(/^#\/?/, "").split("?", 2);
  const view = VIEWS.find((name) => name === path) ?? "tree";
  const found = new URLSearchParams(query);
  const parameters: Record<string, string | readonly string[]> = {};
  for (const name of new Set(found.keys())) {
    const values = found.getAll(name);
    parameters[name] = values.length === 1 ? (values[0] ?? "") : values;
  }
  return { view, parameters };
}

export function fragmentOf({ view, parameters }: Place): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    for (const each of typeof value === "string" ? [value] : value) if (each !== "") query.append(name, each);
  }
  // Names of objects stay readable: a fragment may hold these characters.
  const text = query.toString().replaceAll("%2F", "/").replaceAll("%3A", ":");
  return text === "" ? `#/${view}` : `#/${view}?${text}`;
}

export function textParameter({ parameters }: Place, name: string): string {
  const value = parameters[name];
  return typeof value === "string" ? value : (value?.[0] ?? "");
}

export function listParameter({ parameters }: Place, name: string): readonly string[] {
  const value = parameters[name] ?? [];
  return typeof value === "string" ? [value] : value;
}

export function treeFragment(at: string): string {
  return fragmentOf({ view: "tree", parameters: { at } });
}
