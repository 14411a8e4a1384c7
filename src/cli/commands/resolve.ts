import { CannotRun, type Command, defineCommand } from "../foundation/command.ts";
import { CLUSTER_FLAGS, chooseTarget } from "../workspace/cluster-flags.ts";

export const resolveCommand: Command = defineCommand({
  name: "resolve",
  summary: "tell which hostname a tenant's reference is about, who has it, who wants it and who had it",
  about: [
    "A tenant that does not get a hostname is told a reference instead of a name, where the TenantPolicy holds claims. This command finds it in the HostnameClaims",
    "of the cluster that kubectl talks to, with your rights: whoever may read HostnameClaims is told all parties. `--json` prints a list of `gateway`, `hostname` and `claim`.",
  ].join("\n"),
  arguments: [{ name: "REF", help: "the 16 digits and letters behind the word reference", count: "one" }],
  flags: { ...CLUSTER_FLAGS, json: { type: "switch", help: "print JSON" } },
  examples: [{ line: "kubectl mergeway resolve 3f0c9d21a4b87e65", says: "who is behind a refusal" }],
  exits: { 0: "found", 1: "there is no such reference that you may read", 2: "could not run" },
  run: async ({ args: [reference = ""], flags }, host) => {
    const { cluster } = chooseTarget([], flags, host) as { cluster?: typeof flags };
    if (cluster === undefined) throw new CannotRun("resolve: needs a cluster");
    const { resolveReference } = await import("../claims/resolve-reference.ts");
    return await resolveReference({ reference, cluster, json: flags.json }, host);
  },
});
