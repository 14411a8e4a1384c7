/** References between objects, after defaulting: group and kind are always present. */

export interface LocalObjectReference {
  readonly group: string;
  readonly kind: string;
  readonly name: string;
}

export interface ObjectReference extends LocalObjectReference {
  readonly namespace?: string;
}

export interface ParentReference extends ObjectReference {
  readonly sectionName?: string;
  readonly port?: number;
}

export interface BackendObjectReference extends ObjectReference {
  readonly port?: number;
}

export interface BackendRef extends BackendObjectReference {
  readonly weight: number;
}
