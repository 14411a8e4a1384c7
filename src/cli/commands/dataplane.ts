import { CannotRun, type Command, defineCommand, type Host } from "../command.ts";
import { openAccessLog } from "../run/access-log.ts";
import { createLogger } from "../run/logger.ts";

export const dataplaneCommand: Command = defineCommand({
  name: "dataplane",
  summary: "serve one Gateway as a pod of its controller",
  about: [
    "What the controller runs in the pods of a Gateway; nobody else needs it. Everything is told by environment variables: MERGEWAY_CONTROLLER, MERGEWAY_GATEWAY,",
    "MERGEWAY_AUTHORITY (PEM), MERGEWAY_TOKEN_FILE, MERGEWAY_STATE_DIR, MERGEWAY_ADMIN_ADDRESS, MERGEWAY_WORKERS, MERGEWAY_ACCESS_LOG, MERGEWAY_DRAIN_SECONDS, MERGEWAY_POD.",
  ].join("\n"),
  arguments: [],
  flags: {},
  examples: [{ line: "mergeway dataplane", says: "in a pod that the controller made" }],
  exits: { 0: "stopped when it was told to", 2: "could not run" },
  async run(_input, host) {
    const logger = createLogger("json", host.err, host.now);
    const accessLog =
      host.env["MERGEWAY_ACCESS_LOG"] === "true"
        ? openAccessLog("-", "json", (error) =>
            logger.error(`the access log cannot be written: ${error.message}`),
          )
        : undefined;
    const { runDataPlanePod } = await import("../../controller/run-dataplane.ts");
    await runDataPlanePod(
      {
        controller: required(host, "MERGEWAY_CONTROLLER"),
        gateway: required(host, "MERGEWAY_GATEWAY"),
        authority: required(host, "MERGEWAY_AUTHORITY"),
        tokenFile: required(host, "MERGEWAY_TOKEN_FILE"),
        stateDirectory: required(host, "MERGEWAY_STATE_DIR"),
        pod: host.env["MERGEWAY_POD"] ?? "pod",
        adminAddress: host.env["MERGEWAY_ADMIN_ADDRESS"] ?? "127.0.0.1:19901",
        workers: Number(host.env["MERGEWAY_WORKERS"] ?? 0),
        drainSeconds: Number(host.env["MERGEWAY_DRAIN_SECONDS"] ?? 30),
        log: (level, message) => logger[level](message),
        ...(accessLog === undefined ? {} : { onRequestEnd: (record) => accessLog.write(record) }),
      },
      host.signal,
    );
    await accessLog?.close();
    return 0;
  },
});

function required(host: Host, name: string): string {
  const value = host.env[name];
  if (value) return value;
  throw new CannotRun(
    `${name} is not set`,
    "this command runs in pods that the controller makes; use `mergeway run` to serve files",
  );
}
