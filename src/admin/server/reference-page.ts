/** docs/reference/admin-api.md, made from the endpoints; a test fails when it is stale. */
import { markdownTable } from "../../view/markdown-table.ts";
import { wrapProse } from "../../view/wrap-prose.ts";
import type { AdminEndpoint } from "./endpoint.ts";

export function adminApiPage(endpoints: readonly AdminEndpoint[]): string {
  return `${[
    "# Admin server",
    "",
    "<!-- Made from src/admin. Refresh with: npm run docs -->",
    "",
    ...wrapProse(`\`mergeway run\` opens it on 127.0.0.1:9909 (\`--admin-address\`). It only reads
      (GET, HEAD) and shows no secrets. It answers only when the \`Host\` is an IP address or
      \`localhost\`: a web page cannot reach it by DNS rebinding. Web pages of other origins are
      refused. It names every tenant and both sides of every conflict, so keep it to the Gateway's
      owner. In a browser, \`/\` is [a page](page.md) that shows all of this; for programs it lists
      the endpoints. Errors are \`{error}\`.`),
    ...endpoints.flatMap(({ path, summary, parameters, answer }) => [
      "",
      `## GET ${path}`,
      "",
      ...wrapProse(summary),
      "",
      ...wrapProse(`Answer: ${answer}`),
      ...(parameters === undefined
        ? []
        : [
            "",
            ...markdownTable([
              ["parameter", ""],
              ...Object.entries(parameters).map(([name, help]) => [`\`${name}\``, help]),
            ]),
          ]),
    ]),
  ].join("\n")}\n`;
}
