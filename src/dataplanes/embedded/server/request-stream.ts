import { Readable } from "node:stream";

/** The body of a request, as fast as it is read. */
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
