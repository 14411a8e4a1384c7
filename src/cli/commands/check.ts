import { type Command, defineCommand } from "../foundation/command.ts";
import { CLUSTER_FLAGS, chooseTarget } from "../workspace/cluster-flags.ts";

export const checkCommand: Command = defineCommand({
  name: "check",
  summary: "find everything in a folder of manifests, or in a cluster, that would be refused or surprising",
  about: [
    "Schema errors, conflicts, routes that nobody takes, missing grants, bad or ending certificates, rules that nothing reaches: each with file, line and",
    "column, rule id, owner and remedy. docs/reference/check-rules.md lists the rules. With --against, the hostnames that a change would",
    "gain, lose or hand to another owner are listed too. Without PATH it reads the cluster that kubectl talks to; findings then name the object",
    "instead of a place in a file. With --policy it shows only what TenantPolicies would change if they were enforced: what they would refuse, and which",
    "hostnames would go or change hands. With --without it shows the same of deleting objects.",
  ].join("\n"),
  arguments: [{ name: "PATH", help: "files, folders, or - for standard input", count: "any" }],
  flags: {
    ...CLUSTER_FLAGS,
    format: {
      type: "choice",
      values: ["text", "json", "sarif", "github"],
      default: "text",
      help: "for people, programs, code scanning, or GitHub Actions",
    },
    "fail-on": {
      type: "choice",
      values: ["error", "warning", "info", "never"],
      default: "warning",
      help: "from which severity on the exit code is 1",
    },
    "expiry-days": {
      type: "number",
      value: "DAYS",
      default: 30,
      min: 0,
      max: 3650,
      help: "report certificates that end within DAYS",
    },
    against: {
      type: "list",
      value: "PATH",
      help: "compare with these manifests: what serves which hostname now",
    },
    without: {
      type: "list",
      value: "KIND/NAMESPACE/NAME",
      help: "show only what would change if this object were deleted",
    },
    policy: {
      type: "list",
      value: "PATH",
      help: "try these TenantPolicies: what would change if they were in force",
    },
  },
  examples: [
    { line: "mergeway check manifests/", says: "everything that is wrong" },
    { line: "mergeway check --context staging", says: "everything that is wrong in a cluster" },
    { line: "mergeway check manifests/ --format sarif > mergeway.sarif", says: "for code scanning" },
    {
      line: "mergeway check new/ --against old/ --format github",
      says: "in a pull request: who would lose a hostname",
    },
    {
      line: "kubectl mergeway check --without ListenerSet/team-a/web",
      says: "before deleting a set: who would lose or get which hostname",
    },
    {
      line: "kubectl mergeway check --policy tenants.yaml",
      says: "before applying a TenantPolicy: whom it would refuse what",
    },
  ],
  exits: { 0: "nothing of the given severity found", 1: "findings", 2: "could not run" },
  run: async ({ args, flags }, host) => {
    const { runCheck } = await import("../check/run-check.ts");
    return await runCheck(
      {
        target: chooseTarget(args, flags, host),
        against: flags.against,
        policies: flags.policy,
        without: flags.without,
        format: flags.format,
        failOn: flags["fail-on"],
        expiryDays: flags["expiry-days"],
      },
      host,
    );
  },
});
