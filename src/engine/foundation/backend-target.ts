/** A reference that resolves, by namespace, name and port. */
export interface BackendTarget {
  readonly namespace: string;
  readonly name: string;
  readonly port: number;
}
