import { type Command, defineCommand } from "../foundation/command.ts";
import { ADMIN_FLAG } from "../live/admin-client.ts";

export const watchCommand: Command = defineCommand({
  name: "watch",
  summary: "show changes of listeners, routes, certificates and backends as they happen",
  about: [
    "Follows the events of the admin server of a running `mergeway run`: a line for each change. It begins with `+` for what is served now, `-` for what has gone, `!` for trouble and `~` for",
    "other changes. When the server goes away it waits, and continues where it was. `--json` prints one object on each line, as the admin API has them. Ctrl-C ends it.",
  ].join("\n"),
  arguments: [],
  flags: {
    admin: ADMIN_FLAG,
    earlier: { type: "switch", help: "begin with the changes that the server has kept" },
    json: { type: "switch", help: "print JSON, one object on each line" },
  },
  examples: [
    { line: "mergeway watch", says: "what changes from now on" },
    { line: "mergeway watch --earlier --json", says: "also what has changed before, for a program" },
  ],
  exits: { 0: "told to stop", 2: "could not run" },
  run: async ({ flags }, host) => {
    const { runWatch } = await import("../live/run-watch.ts");
    const { admin, earlier, json } = flags;
    return await runWatch({ admin, earlier, json }, host);
  },
});
