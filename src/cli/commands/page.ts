import { type Command, defineCommand } from "../foundation/command.ts";
import { CLUSTER_FLAGS } from "../workspace/cluster-flags.ts";

export const pageCommand: Command = defineCommand({
  name: "page",
  summary: "show a cluster as a page in the browser, with your own rights",
  about: [
    "Watches the cluster that kubectl talks to, with the rights of its user, and serves the page on this machine's loopback, for whoever has the printed link. It changes nothing, and nothing is sent anywhere",
    "but to the API server. Who may read everything sees the view of the Gateway's owner. Who may read all Gateways, sets, classes, namespaces and TenantPolicies sees who holds what;",
    "the rest is as the statuses tell it. Who may read less, or names namespaces with -n, sees what is theirs, as the statuses tell it: conflicts say that another listener holds the hostname, and not whose.",
    "It ends when a right is taken away.",
  ].join("\n"),
  arguments: [],
  flags: {
    ...CLUSTER_FLAGS,
    address: {
      type: "text",
      value: "ADDRESS:PORT",
      default: "127.0.0.1:0",
      help: "where the page is served, on loopback; port 0 for any that is free",
    },
  },
  examples: [
    { line: "kubectl mergeway page", says: "the current cluster" },
    { line: "kubectl mergeway page -n team-a -n team-a-staging", says: "what two namespaces have" },
  ],
  exits: { 0: "told to stop", 2: "could not run, or a right was taken away" },
  run: async ({ flags }, host) => {
    const { servePage } = await import("../page/serve-page.ts");
    return await servePage(flags, host);
  },
});
