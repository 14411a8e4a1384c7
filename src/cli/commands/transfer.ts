import { CannotRun, type Command, defineCommand } from "../foundation/command.ts";
import { CLUSTER_FLAGS, chooseTarget, FILE_FLAG } from "../workspace/cluster-flags.ts";

export const transferCommand: Command = defineCommand({
  name: "transfer",
  summary: "give a hostname to another namespace, without a moment in which nobody serves it",
  about: [
    "Adds an entry to `spec.transfers` of the Gateway's TenantPolicy, in the cluster that kubectl talks to; kubectl or GitOps can write the same. Listeners of other",
    "namespaces give the hostname up on each port where a listener of that namespace can serve it, however old they are, and not before. It shows first what changes",
    "hands. For manifests, and with `--dry-run`, it prints the entry and writes nothing. A transfer allows nothing that no rule of the TenantPolicy allows.",
  ].join("\n"),
  arguments: [{ name: "HOSTNAME", help: "a name, or a wildcard such as *.example.com", count: "one" }],
  flags: {
    to: {
      type: "text",
      value: "NAMESPACE[/NAME]",
      help: "who gets it: a namespace, or one set or child Gateway",
    },
    gateway: {
      type: "text",
      value: "NAMESPACE/NAME",
      help: "the Gateway, where several have TenantPolicies",
    },
    "dry-run": { type: "switch", help: "show what changes hands and what would be written" },
    file: FILE_FLAG,
    ...CLUSTER_FLAGS,
  },
  examples: [
    {
      line: "kubectl mergeway transfer shop.example.com --to new-shop --dry-run",
      says: "who would give it up, and to whom",
    },
    { line: "kubectl mergeway transfer shop.example.com --to new-shop", says: "do it" },
  ],
  exits: {
    0: "it serves the hostname, or would",
    1: "the transfer is written, or would be, and nobody there can serve the hostname yet",
    2: "could not run",
  },
  run: async ({ args: [hostname = ""], flags }, host) => {
    const { to, gateway, file } = flags;
    if (to === undefined)
      throw new CannotRun("transfer: needs --to", "Write --to NAMESPACE or --to NAMESPACE/NAME.");
    const { transferHostname } = await import("../claims/transfer-hostname.ts");
    const target = chooseTarget(file, flags, host);
    return await transferHostname({ hostname, to, gateway, target, dryRun: flags["dry-run"] }, host);
  },
});
