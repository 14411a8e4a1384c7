/** What every object of an API server has, before anything else of it is trusted. */
export interface ApiObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ApiMetadata;
  readonly [field: string]: unknown;
}

export interface ApiMetadata {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly generation?: number;
  readonly resourceVersion?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly managedFields?: readonly ManagedFields[];
  readonly finalizers?: readonly string[];
}

export interface ManagedFields {
  readonly manager?: string;
  readonly subresource?: string;
}

export interface ApiList {
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string };
  readonly items?: readonly ApiObject[] | null;
}

/** `apiVersion` is `v1` for the core group and `group/version` for others. */
export interface CollectionPath {
  readonly apiVersion: string;
  readonly plural: string;
  readonly namespace?: string | undefined;
}

export function collectionPath({ apiVersion, plural, namespace }: CollectionPath): string {
  const base = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  return namespace ? `${base}/namespaces/${namespace}/${plural}` : `${base}/${plural}`;
}

export function objectPath(collection: CollectionPath, name: string, subresource?: string): string {
  const path = `${collectionPath(collection)}/${name}`;
  return subresource === undefined ? path : `${path}/${subresource}`;
}
