import { type Command, defineCommand } from "../foundation/command.ts";
import { CLUSTER_FLAGS, chooseTarget, FILE_FLAG } from "../workspace/cluster-flags.ts";

export const whoCommand: Command = defineCommand({
  name: "who",
  summary: "tell who holds a hostname, who else asks for it, and which wildcards cover it",
  about: [
    "Reads manifests, or without any the cluster that kubectl talks to. For every port of every Gateway it names the listener whose rules a request for the",
    "hostname meets, the routes that serve it there, listeners that ask for the same hostname and do not get it, with the reason, and wider patterns that",
    "would be next. It is the view of the Gateway's owner: it names both sides. `--json` prints a list of `gateway`, `port`, `protocol`, `holder`, `refused` and `wider`.",
  ].join("\n"),
  arguments: [{ name: "HOSTNAME", help: "a name, or a wildcard such as *.example.com", count: "one" }],
  flags: {
    file: FILE_FLAG,
    ...CLUSTER_FLAGS,
    json: { type: "switch", help: "print JSON" },
  },
  examples: [
    { line: "mergeway who coffee.example.com -f examples/two-teams", says: "who has it, and who wanted it" },
    { line: "kubectl mergeway who '*.example.com'", says: "the same of the current cluster, for a wildcard" },
  ],
  exits: { 0: "somebody holds it", 1: "nobody does, or some of it could not be read", 2: "could not run" },
  run: async ({ args, flags }, host) => {
    const { printWho } = await import("../who/print-who.ts");
    const { file, json } = flags;
    const [hostname = ""] = args;
    return await printWho({ hostname, target: chooseTarget(file, flags, host), json }, host);
  },
});
