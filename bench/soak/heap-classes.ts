// Heap snapshots by class: how many objects of each there are and what they hold by themselves, and
// what has grown from one snapshot to a later one.

interface Snapshot {
  readonly snapshot: {
    readonly meta: {
      readonly node_fields: readonly string[];
      readonly node_types: readonly [readonly string[], ...unknown[]];
    };
  };
  readonly nodes: readonly number[];
  readonly strings: readonly string[];
}

export interface ClassSize {
  readonly count: number;
  readonly bytes: number;
}

export interface Growth {
  readonly name: string;
  readonly count: number;
  readonly bytes: number;
}

export function classesOf(text: string): ReadonlyMap<string, ClassSize> {
  const { snapshot, nodes, strings } = JSON.parse(text) as Snapshot;
  const { node_fields: fields, node_types: types } = snapshot.meta;
  const [typeAt, nameAt, sizeAt] = ["type", "name", "self_size"].map((field) => fields.indexOf(field));
  if (typeAt === undefined || nameAt === undefined || sizeAt === undefined) throw new Error("not a snapshot");
  const classes = new Map<string, ClassSize>();
  for (let at = 0; at < nodes.length; at += fields.length) {
    const type = types[0][nodes[at + typeAt] ?? 0] ?? "";
    const name = classOf(type, strings[nodes[at + nameAt] ?? 0] ?? "");
    const before = classes.get(name) ?? { count: 0, bytes: 0 };
    classes.set(name, { count: before.count + 1, bytes: before.bytes + (nodes[at + sizeAt] ?? 0) });
  }
  return classes;
}

/** Strings and code have their contents for names, which would make a class of each. */
function classOf(type: string, name: string): string {
  return type === "object" || type === "native" || type === "closure"
    ? `${type} ${name.slice(0, 80)}`
    : `(${type})`;
}

export function growthOf(
  before: ReadonlyMap<string, ClassSize>,
  after: ReadonlyMap<string, ClassSize>,
  most = 25,
): readonly Growth[] {
  return [...after]
    .map(([name, { count, bytes }]) => {
      const old = before.get(name) ?? { count: 0, bytes: 0 };
      return { name, count: count - old.count, bytes: bytes - old.bytes };
    })
    .filter(({ bytes }) => bytes > 0)
    .sort((a, b) => b.bytes - a.bytes)
    .slice(0, most);
}
