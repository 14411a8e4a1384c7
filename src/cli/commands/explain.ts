import { type Command, defineCommand } from "../foundation/command.ts";
import { CLUSTER_FLAGS, chooseTarget, FILE_FLAG } from "../workspace/cluster-flags.ts";

export const explainCommand: Command = defineCommand({
  name: "explain",
  summary: "tell which listener, rule and backend a request would hit, and why no other",
  about: [
    "Nothing is sent: the answer comes from the manifests, or without any from the cluster that kubectl talks to, by the same code that the data plane routes with. The path goes port, SNI, client certificate,",
    "listener, authority (421 and 404), rule, policies, backend; every candidate that lost is listed with the rule that eliminated it.",
    "Policies are printed with the object and section that each setting comes from, and the defaults that gave way to others. Address lists are judged for `--client`; rate limits are printed, not counted.",
    "`--json` prints `outcome` (forward, respond, refuse), `status`, `location`, `listener` {kind, namespace, name, section, hostname},",
    "`route` {kind, namespace, name, rule, match}, `backends`, `policy` {settings, overridden}, `steps` and `eliminated`.",
  ].join("\n"),
  arguments: [
    {
      name: "URL",
      help: "http, https, tls, tcp or udp, with the port unless it is the scheme's own",
      count: "one",
    },
  ],
  flags: {
    file: FILE_FLAG,
    ...CLUSTER_FLAGS,
    method: { type: "text", short: "X", value: "METHOD", default: "GET", help: "the request's method" },
    header: { type: "list", short: "H", value: "'NAME: VALUE'", help: "a header; Host replaces the URL's" },
    sni: {
      type: "text",
      value: "NAME",
      help: "the server name of the handshake, where it is not the URL's host; empty for none",
    },
    "client-cert": {
      type: "text",
      value: "FILE",
      bare: "valid",
      help: "the client presents this certificate (PEM); without FILE, one that the port accepts",
    },
    client: {
      type: "text",
      value: "ADDRESS",
      help: "the client's address, as the Gateway finds it behind proxies; for address lists of policies",
    },
    gateway: {
      type: "text",
      value: "NAMESPACE/NAME",
      help: "the Gateway that is meant, where several have the port",
    },
    json: { type: "switch", help: "print JSON" },
  },
  examples: [
    { line: "mergeway explain https://coffee.example.com:8443/ -f examples/two-teams", says: "who answers" },
    {
      line: "mergeway explain https://coffee.example.com/ --context staging",
      says: "who would answer in a cluster",
    },
    {
      line: "mergeway explain https://tea.example.com:8443/ --sni coffee.example.com -f examples/two-teams",
      says: "a connection that was opened for somebody else: 421",
    },
    {
      line: "mergeway explain http://coffee.example.com:8080/stock --client 192.0.2.1 -f examples/policies",
      says: "what policies do to a client: 403",
    },
    {
      line: "mergeway explain http://tea.example.com:8080/ -X POST -H 'x-user: me' --json -f examples/two-teams",
      says: "for programs",
    },
  ],
  exits: { 0: "explained, whatever the outcome", 2: "could not run" },
  run: async ({ args: [url = ""], flags }, host) => {
    const { runExplain } = await import("../explain/run-explain.ts");
    const target = chooseTarget(flags.file, flags, host);
    return await runExplain({ url, target, ...flags, certificate: flags["client-cert"] }, host);
  },
});
