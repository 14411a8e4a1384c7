/**
 * A token that shows itself to nobody by accident: printing, logging or serialising it gives a
 * placeholder.
 */
export class Credential {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  /** The only way to the token, for the one place that sends it or hands it to a child process. */
  reveal(): string {
    return this.#text;
  }

  /** For text that somebody else wrote and that may repeat the token. */
  removeFrom(text: string): string {
    return this.#text === "" ? text : text.replaceAll(this.#text, "[token]");
  }

  toString(): string {
    return "[token]";
  }

  toJSON(): string {
    return "[token]";
  }
}
