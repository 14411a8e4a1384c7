import { Readable } from "node:stream";

/** The body of a request, at the pace of whoever reads it. */
export class RequestStream extends Readable {
  readonly #resume: () => void;

  constructor(resume: () => void) {
    super();
    this.#resume = resume;
    this.on("error", ignore);
  }

  override _read(): void {
    this.#resume();
  }
}

function ignore(): void {}
