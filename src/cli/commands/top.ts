import { type Command, defineCommand } from "../foundation/command.ts";
import { ADMIN_FLAG } from "../live/admin-client.ts";

export const topCommand: Command = defineCommand({
  name: "top",
  summary: "show live who gets how many requests and errors, by owner",
  about: [
    "Asks the admin server of a running `mergeway run`, and shows requests and answers with 5xx in a second for every owner of listeners, the busiest first.",
    "In a terminal the table is drawn anew each time, cut to its size; elsewhere each table follows the last one. Ctrl-C ends it.",
  ].join("\n"),
  arguments: [],
  flags: {
    admin: ADMIN_FLAG,
    interval: {
      type: "number",
      value: "SECONDS",
      default: 2,
      min: 1,
      max: 3600,
      help: "time between two tables",
    },
    count: {
      type: "number",
      value: "N",
      default: 0,
      min: 0,
      max: 1_000_000,
      help: "end after so many tables; 0: go on",
    },
    namespace: {
      type: "list",
      short: "n",
      value: "NAMESPACE",
      help: "only owners in this namespace; may be repeated",
    },
  },
  examples: [
    { line: "mergeway top", says: "what `mergeway run` on this machine serves now" },
    { line: "mergeway top --count 1 --interval 10", says: "the rates of ten seconds, once, for a script" },
  ],
  exits: { 0: "told to stop, or shown as often as asked", 2: "could not run" },
  run: async ({ flags }, host) => {
    const { runTop } = await import("../live/run-top.ts");
    const { admin, interval, count, namespace } = flags;
    return await runTop({ admin, intervalSeconds: interval, count, namespaces: namespace }, host);
  },
});
