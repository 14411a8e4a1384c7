/**
 * A mistake of the person or a lack of the machine: shown as one message that says what to do,
 * without a stack.
 */
export class ClusterFailure extends Error {
  override readonly name: string = "ClusterFailure";
}

export function failureOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
