import { type Command, defineCommand } from "../foundation/command.ts";
import { CLUSTER_FLAGS, chooseTarget } from "../workspace/cluster-flags.ts";

export const statusCommand: Command = defineCommand({
  name: "status",
  summary: "compute the state of a folder of manifests, or of a cluster, without serving it",
  about: [
    "Reads manifests, or without any the cluster that kubectl talks to, and shows who owns which port and hostname, and why. `tree` and `wide` are the view of the Gateway's owner and",
    "name both sides of a conflict; of a cluster they also repeat what its status says of a Gateway that is not programmed, or of replicas of its data plane that lag. `yaml` and `json` print every resource with the status that an API server would hold, with",
    "`Programmed` as if the data plane had accepted everything; private keys are left out. Of a cluster they print the status that it",
    "holds now, unless `--computed` is given. As a plugin of kubectl: `kubectl mergeway status`.",
  ].join("\n"),
  arguments: [{ name: "PATH", help: "files, folders, or - for standard input", count: "any" }],
  flags: {
    ...CLUSTER_FLAGS,
    output: {
      type: "choice",
      short: "o",
      values: ["tree", "wide", "yaml", "json"],
      default: "tree",
      help: "how to show it",
    },
    computed: {
      type: "switch",
      help: "yaml and json of a cluster: the status computed now, not the one that it holds",
    },
  },
  examples: [
    {
      line: "mergeway status examples/two-teams",
      says: "the tree of Gateways, owners, listeners and routes",
    },
    { line: "mergeway status examples/two-teams -o wide", says: "one line per listener" },
    { line: "mergeway status --context staging -o wide", says: "the same of a cluster" },
    {
      line: "kubectl mergeway status -n gateways -n team-a",
      says: "two namespaces of the current cluster, as a plugin of kubectl",
    },
    {
      line: "kubectl get gateways,listenersets,httproutes -A -o yaml | mergeway status - -o yaml",
      says: "what Mergeway would say of objects from anywhere",
    },
  ],
  exits: { 0: "computed", 1: "computed, but some of it could not be read", 2: "could not run" },
  run: async ({ args, flags }, host) => {
    const { printStatus } = await import("../status/print-status.ts");
    const { output, computed } = flags;
    return await printStatus({ target: chooseTarget(args, flags, host), output, computed }, host);
  },
});
