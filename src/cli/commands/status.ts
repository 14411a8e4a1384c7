import { type Command, defineCommand } from "../command.ts";

export const statusCommand: Command = defineCommand({
  name: "status",
  summary: "compute the state of a folder of manifests, without serving it",
  about: [
    "Reads manifests and shows who owns which port and hostname, and why. `tree` and `wide` are the view of the Gateway's owner and",
    "name both sides of a conflict. `yaml` and `json` print every resource with the status that an API server would hold, with",
    "`Programmed` as if the data plane had accepted everything; private keys are left out.",
  ].join("\n"),
  arguments: [{ name: "PATH", help: "files, folders, or - for standard input", count: "some" }],
  flags: {
    output: {
      type: "choice",
      short: "o",
      values: ["tree", "wide", "yaml", "json"],
      default: "tree",
      help: "how to show it",
    },
  },
  examples: [
    {
      line: "mergeway status examples/two-teams",
      says: "the tree of Gateways, owners, listeners and routes",
    },
    { line: "mergeway status examples/two-teams -o wide", says: "one line per listener" },
    {
      line: "kubectl get gateways,listenersets,httproutes -A -o yaml | mergeway status - -o yaml",
      says: "what Mergeway would say of a cluster",
    },
  ],
  exits: { 0: "computed", 1: "computed, but some documents could not be read", 2: "could not run" },
  run: async ({ args, flags }, host) => {
    const { printStatus } = await import("../status/print-status.ts");
    return await printStatus(args, flags.output, host);
  },
});
