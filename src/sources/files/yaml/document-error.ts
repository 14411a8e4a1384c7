/** What is wrong at one place of a file, and how to fix it. Lines and columns count from 1. */
export interface DocumentError extends Position {
  readonly file: string;
  /** Field path such as `spec.listeners[0].port`. */
  readonly path?: string;
  /** The object it is about, if that is known: `HTTPRoute team-a/web`. */
  readonly object?: string;
  readonly rule: string;
  readonly message: string;
  readonly remedy: string;
}

export interface Position {
  readonly line: number;
  readonly column: number;
}
