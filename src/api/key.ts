import type { Kind, Resource } from "./resource.ts";

/**
 * Names one object across all kinds: `Kind/namespace/name`; the namespace of a cluster-scoped
 * object is empty.
 */
export type Key = string;

export function keyFor(kind: Kind, namespace: string, name: string): Key {
  return `${kind}/${namespace}/${name}`;
}

export function keyOf(resource: Resource): Key {
  return keyFor(resource.kind, resource.metadata.namespace ?? "", resource.metadata.name);
}

export function kindOf(key: Key): Kind {
  return key.slice(0, key.indexOf("/")) as Kind;
}

export interface KeyParts {
  readonly kind: Kind;
  readonly namespace: string;
  readonly name: string;
}

export function partsOf(key: Key): KeyParts {
  const first = key.indexOf("/");
  const second = key.indexOf("/", first + 1);
  return {
    kind: key.slice(0, first) as Kind,
    namespace: key.slice(first + 1, second),
    name: key.slice(second + 1),
  };
}
