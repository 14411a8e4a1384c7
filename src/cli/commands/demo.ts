import { fileURLToPath } from "node:url";
import { describe, describeListener } from "../../view/merged-state.ts";
import { type Command, defineCommand, type Host } from "../command.ts";
import { startDemoBackends } from "../demo/backends.ts";
import { curlLines } from "../demo/curl-lines.ts";
import { adminPlace, DEFAULT_ADMIN } from "../run/admin.ts";
import type { LiveGateway } from "../run/live-gateway.ts";
import { serve } from "../run/serve.ts";
import { openWorkspace } from "../workspace.ts";

const EXAMPLE = new URL("../../../examples/two-teams/", import.meta.url);
const ADDRESS = "127.0.0.1";

export const demoCommand: Command = defineCommand({
  name: "demo",
  summary: "serve the example of two teams on one Gateway, with backends to answer",
  about: [
    "Starts a small backend for every EndpointSlice of the example, serves it on 127.0.0.1 (ports 8080 and 8443) and prints what to try.",
    "The third team asks for a hostname that is taken: its refusal is shown with the reason.",
  ].join("\n"),
  arguments: [],
  flags: {
    "port-offset": {
      type: "number",
      value: "N",
      default: 0,
      min: 0,
      max: 57_092,
      help: "open every port N higher, where 8080 or 8443 is in use",
    },
  },
  examples: [{ line: "mergeway demo", says: "the same as npm start in a checkout" }],
  exits: { 0: "stopped when it was told to", 2: "could not run" },
  run: async ({ flags }, host) => {
    const folder = fileURLToPath(EXAMPLE);
    const { resources } = await openWorkspace([folder], host.signal);
    const backends = await startDemoBackends(resources.values());
    try {
      return await serve(
        {
          paths: [folder],
          address: ADDRESS,
          portOffset: flags["port-offset"],
          workers: 0,
          admin: adminPlace(DEFAULT_ADMIN),
          logFormat: "pretty",
          accessLog: undefined,
          statusDirectory: undefined,
          graceSeconds: 2,
          onSettled: (live) => tell(live, flags["port-offset"], host),
        },
        host,
      );
    } finally {
      backends.close();
    }
  },
});

function tell(live: LiveGateway, portOffset: number, { out }: Host): void {
  const authority = fileURLToPath(new URL("demo-ca.crt", EXAMPLE));
  const refused = live.state().gateways.flatMap(({ owners }) =>
    owners.flatMap((owner) =>
      owner.listeners
        .filter(({ state }) => state !== "serving")
        .map(({ section, reason, message, heldBy }) => {
          const holder = heldBy === undefined ? "" : `\n    held by ${describeListener(heldBy)}`;
          return `  ${describe(owner)}, listener ${section}: ${reason}\n    ${message}${holder}`;
        }),
    ),
  );
  out.line(out.style("bold", "Refused, and why"));
  out.line(refused.join("\n"));
  out.line();
  out.line(out.style("bold", "Try it"));
  for (const line of curlLines(live.table, { address: ADDRESS, portOffset, authority })) out.line(line);
  out.line();
  out.line("Edit the files in examples/two-teams while it runs; Ctrl-C stops it.");
}
