import { fileURLToPath } from "node:url";
import { describe, describeListener } from "../../view/merged-state.ts";
import type { ExitCode, Host } from "../foundation/command.ts";
import { adminPlace, DEFAULT_ADMIN } from "../run/admin-place.ts";
import type { LiveGateway } from "../run/live-gateway.ts";
import { serve } from "../run/serve.ts";
import { openManifests } from "../workspace/workspace.ts";
import { startDemoBackends } from "./backends.ts";
import { curlLines } from "./curl-lines.ts";

/** The examples are beside src in a checkout and beside dist in the package. */
const EXAMPLE = new URL("../../../examples/two-teams/", import.meta.url);
const ADDRESS = "127.0.0.1";

export async function runDemo(portOffset: number, host: Host): Promise<ExitCode> {
  const folder = fileURLToPath(EXAMPLE);
  const { resources } = await openManifests([folder]);
  const backends = await startDemoBackends(resources.values());
  try {
    return await serve(
      {
        paths: [folder],
        address: ADDRESS,
        portOffset,
        workers: 0,
        admin: adminPlace(DEFAULT_ADMIN),
        logFormat: "pretty",
        accessLog: undefined,
        statusDirectory: undefined,
        graceSeconds: 2,
        onSettled: (live, adminUrl) => printTour(live, { portOffset, adminUrl }, host),
      },
      host,
    );
  } finally {
    backends.close();
  }
}

/** Prints what is refused and why, and curl lines to try. */
function printTour(
  live: LiveGateway,
  { portOffset, adminUrl }: { readonly portOffset: number; readonly adminUrl: string | undefined },
  { out }: Host,
): void {
  const authority = fileURLToPath(new URL("demo-ca.crt", EXAMPLE));
  const refused = live
    .state()
    .gateways.flatMap(({ owners }) =>
      owners.flatMap((owner) =>
        owner.listeners
          .filter(({ state }) => state !== "serving")
          .flatMap(({ section, reason, message, heldBy }) => [
            `  ${describe(owner)}, listener ${section}: ${reason}`,
            `    ${message}`,
            ...(heldBy === undefined ? [] : [`    held by ${describeListener(heldBy)}`]),
          ]),
      ),
    );
  out.line(out.style("bold", "Refused, and why"));
  for (const line of refused) out.line(line);
  out.line();
  out.line(out.style("bold", "Try it"));
  for (const line of curlLines(live.table, { address: ADDRESS, portOffset, authority })) out.line(line);
  out.line();
  if (adminUrl !== undefined) {
    out.line(out.style("bold", "Look at it"));
    out.line(`${adminUrl}/`);
    out.line();
  }
  out.line("Edit the files in examples/two-teams while it runs; Ctrl-C stops it.");
}
