/**
 * axe-core over what the page shows: the rules of WCAG 2.2 at the levels A and AA, and its best
 * practices.
 */

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** Evaluated through the debugger, so that the page's Content-Security-Policy stays as it is. */
export const LOAD_AXE: string = `${readFileSync(fileURLToPath(import.meta.resolve("axe-core/axe.min.js")), "utf8")};[]`;

/** Gives each violation with the elements that it is of. */
export const AXE = `axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) =>
  violations.map(({ id, nodes }) => [id, ...nodes.slice(0, 3).map(({ target, failureSummary }) => [target.join(" "), failureSummary])]))`;
