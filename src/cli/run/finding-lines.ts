import type { DocumentError } from "../../sources/files/document-error.ts";
import type { Settled } from "../../sources/files/folder-state.ts";
import type { Logger } from "./logger.ts";

const MAX_LINES = 20;

/** What could not be read is told each time something about it changes; whatever was served before goes on being served. */
export function logFindings(
  { errors, warnings }: Pick<Settled, "errors" | "warnings">,
  logger: Logger,
): void {
  for (const error of errors.slice(0, MAX_LINES))
    logger.error(lineOf(error), { event: "file-error", ...error });
  if (errors.length > MAX_LINES) {
    const left = errors.length - MAX_LINES;
    logger.error(`… and ${left} more errors; \`mergeway check\` lists them all`, {
      event: "more-errors",
      count: left,
    });
  }
  if (warnings.length > 0) {
    const count = `${warnings.length} ${warnings.length === 1 ? "warning" : "warnings"}`;
    logger.warn(`${count}; \`mergeway check\` lists them`, {
      event: "file-warnings",
      count: warnings.length,
    });
  }
}

function lineOf({ file, line, column, path, message }: DocumentError): string {
  return `${file}:${line}:${column}: ${path === undefined ? "" : `${path}: `}${message}; what was served before stays`;
}
