import { CannotRun, type Command, defineCommand } from "../foundation/command.ts";

export const tunnelCommand: Command = defineCommand({
  name: "tunnel",
  summary: "print an ingress document for a Cloudflare Tunnel that runs without Mergeway",
  about: [
    "`mergeway tunnel render PATH…` prints rules that cloudflared itself understands: anchored paths, the most specific hostname first, 404 where another team's",
    "routes end. cloudflared sees Host and path and sends requests unchanged to one service: whatever else a route asks for is listed with the reason,",
    "and then nothing is printed unless `--partial` says that those rules may be left out. With Mergeway as data plane (`mergeway run --data-plane tunnel`)",
    "none of these limits exist.",
  ].join("\n"),
  arguments: [
    {
      name: "render PATH",
      help: "the word render, then files, folders, or - for standard input",
      count: "some",
    },
  ],
  flags: {
    gateway: {
      type: "text",
      value: "NAMESPACE/NAME",
      help: "the Gateway that is meant, where there are several",
    },
    targets: {
      type: "choice",
      values: ["services", "endpoints"],
      default: "services",
      help: "backends by the name of their Service, or by the address of their only endpoint",
    },
    "cluster-domain": {
      type: "text",
      value: "DOMAIN",
      default: "cluster.local",
      help: "the cluster's domain, for the names of Services",
    },
    output: {
      type: "choice",
      short: "o",
      values: ["yaml", "json"],
      default: "yaml",
      help: "yaml for cloudflared's file, json for the API (PUT …/configurations)",
    },
    partial: { type: "switch", help: "print it also when rules had to be left out" },
  },
  examples: [
    { line: "mergeway tunnel render gateway/ teams/", says: "the document as YAML, or why there is none" },
    { line: "mergeway tunnel render teams/ --gateway infra/edge -o json", says: "the body of an API call" },
  ],
  exits: { 0: "everything is in the document", 1: "something could not be expressed", 2: "could not run" },
  run: async ({ args: [action, ...paths], flags }, host) => {
    if (action !== "render" || paths.length === 0) {
      throw new CannotRun("tunnel: needs render and a PATH", "Write mergeway tunnel render PATH…");
    }
    const { runRender } = await import("../tunnel/run-render.ts");
    return await runRender(
      {
        paths,
        gateway: flags.gateway,
        targets: flags.targets,
        clusterDomain: flags["cluster-domain"],
        output: flags.output,
        partial: flags.partial,
      },
      host,
    );
  },
});
