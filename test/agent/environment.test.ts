import { describe, expect, it } from "vitest";
import { POD_VARIABLES, podEnvironment, readPodSetting } from "../../src/agent/environment.ts";
import { dataplaneCommand } from "../../src/cli/commands/dataplane.ts";

describe("the environment of data plane pods", () => {
  it("is read as it was written", () => {
    const settings = { gateway: "infra/shared", telemetry: { accessLog: { stdout: {} } }, drainSeconds: 50 };
    const environment = podEnvironment(settings);
    expect(environment).toEqual({
      MERGEWAY_GATEWAY: "infra/shared",
      MERGEWAY_TELEMETRY: '{"accessLog":{"stdout":{}}}',
      MERGEWAY_DRAIN_SECONDS: "50",
    });
    for (const [name, value] of Object.entries(settings))
      expect(readPodSetting(environment, name as keyof typeof settings)).toEqual(value);
  });

  it("has defaults for some variables, and others must be set to something", () => {
    expect(readPodSetting({}, "workers")).toBe(0);
    expect(readPodSetting({}, "telemetry")).toEqual({});
    expect(readPodSetting({}, "controller")).toBeUndefined();
    expect(readPodSetting({ MERGEWAY_CONTROLLER: "" }, "controller")).toBeUndefined();
  });

  it("is named as a whole by the help of the command that reads it", () => {
    const named = dataplaneCommand.about?.match(/MERGEWAY_[A-Z_]+/g);
    expect(named?.toSorted()).toEqual(
      Object.values(POD_VARIABLES)
        .map(({ name }) => name)
        .toSorted(),
    );
  });
});
