import { CannotRun, type Command, defineCommand } from "../foundation/command.ts";
import { CLUSTER_FLAGS, chooseTarget } from "../workspace/cluster-flags.ts";

export const policyCommand: Command = defineCommand({
  name: "policy",
  summary: "print admission policies that refuse at the API server what TenantPolicies refuse",
  about: [
    "`mergeway policy render [PATH…]` prints a ValidatingAdmissionPolicy, and a binding for each namespace that has a TenantPolicy: in manifests, or without any",
    "in the cluster that kubectl talks to. The TenantPolicies are its parameters, so it stays as it is when their rules change; only a TenantPolicy in another",
    "namespace needs another binding. It covers Gateways that are children, ListenerSets, XListenerSets and all routes, in every version. The same comes with the",
    "chart (`admission.enabled`). Where a TenantPolicy holds claims, a second one refuses hostnames that another namespace uses, by the HostnameClaims that the",
    "controller writes (`admission.claims` of the chart). docs/reference/tenant-policy.md tells what is left to the controller.",
  ].join("\n"),
  arguments: [
    {
      name: "render [PATH]",
      help: "the word render, then files, folders, or - for standard input",
      count: "some",
    },
  ],
  flags: {
    ...CLUSTER_FLAGS,
    "failure-policy": {
      type: "choice",
      values: ["Ignore", "Fail"],
      default: "Ignore",
      help: "when the API server cannot evaluate it: let the object in, which the controller then judges, or refuse it",
    },
    "missing-claims": {
      type: "choice",
      values: ["Allow", "Deny"],
      default: "Allow",
      help: "of TenantPolicies with claims: Hold, where no HostnameClaims are: let sets and child Gateways in, or refuse all of them",
    },
    output: { type: "choice", short: "o", values: ["yaml", "json"], default: "yaml", help: "the format" },
  },
  examples: [
    {
      line: "mergeway policy render gateways/ | kubectl apply -f -",
      says: "tenants are told when they apply an object, not only in its status",
    },
    { line: "kubectl mergeway policy render -o json", says: "for the TenantPolicies of the current cluster" },
  ],
  exits: { 0: "printed", 1: "some of the manifests could not be read", 2: "could not run" },
  run: async ({ args: [action, ...paths], flags }, host) => {
    if (action !== "render")
      throw new CannotRun("policy: needs the word render", "Write mergeway policy render.");
    const { renderPolicies } = await import("../policy/render-policies.ts");
    return await renderPolicies(
      {
        target: chooseTarget(paths, flags, host),
        failurePolicy: flags["failure-policy"] as "Ignore" | "Fail",
        missingClaims: flags["missing-claims"] as "Allow" | "Deny",
        output: flags.output,
      },
      host,
    );
  },
});
