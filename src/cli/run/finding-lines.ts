import type { Settled } from "../../sources/files/folder-state.ts";
import type { DocumentError } from "../../sources/files/yaml/document-error.ts";
import type { Logger } from "./logger.ts";

const MAX_LINES = 20;

/** What could not be read is told once, and once more when all is well again. */
export class FindingLog {
  readonly #logger: Logger;
  #told: ReadonlySet<string> = new Set();
  #warnings = 0;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  tell({ errors, warnings }: Pick<Settled, "errors" | "warnings">): void {
    const lines = new Map(errors.map((error) => [lineOf(error), error]));
    const fresh = [...lines].filter(([line]) => !this.#told.has(line));
    for (const [line, error] of fresh.slice(0, MAX_LINES))
      this.#logger.error(line, { event: "file-error", ...error });
    if (fresh.length > MAX_LINES) {
      const left = fresh.length - MAX_LINES;
      const message = `… and ${left} more errors; \`mergeway check\` lists them all`;
      this.#logger.error(message, { event: "more-errors", count: left });
    }
    if (lines.size === 0 && this.#told.size > 0)
      this.#logger.info("all files can be read again", { event: "files-mended" });
    this.#told = new Set(lines.keys());
    this.#tellWarnings(warnings.length);
  }

  #tellWarnings(count: number): void {
    if (count > 0 && count !== this.#warnings) {
      const message = `${count} ${count === 1 ? "warning" : "warnings"}; \`mergeway check\` lists them`;
      this.#logger.warn(message, { event: "file-warnings", count });
    }
    this.#warnings = count;
  }
}

function lineOf({ file, line, column, path, message }: DocumentError): string {
  return `${file}:${line}:${column}: ${path === undefined ? "" : `${path}: `}${message}`;
}
