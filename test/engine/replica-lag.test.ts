import { describe, expect, it } from "vitest";
import { keyOf } from "../../src/api/key.ts";
import { Engine } from "../../src/engine/engine.ts";
import type { ReplicaFact } from "../../src/engine/foundation/inputs.ts";
import { readCase } from "./case-file.ts";
import { TEST_SETTINGS } from "./settings.ts";

const GATEWAY = "Gateway/infra/parent";
const CHILD = "Gateway/infra/child";
const CALM = {
  type: "Programmed",
  status: "True",
  reason: "Programmed",
  message: "the data plane serves all that is valid",
};

function engine(): Engine {
  const made = new Engine({ ...TEST_SETTINGS, assumeProgrammed: true });
  const { resources } = readCase(new URL("cases/child-gateway-merges.yaml", import.meta.url).pathname);
  made.apply(resources.map((resource) => ({ key: keyOf(resource), resource })));
  return made;
}

function programmed(of: Engine, key: string): unknown {
  const verdict = of.verdict(key);
  return verdict?.type === "gateway"
    ? verdict.conditions.find(({ type }) => type === "Programmed")
    : undefined;
}

function learn(made: Engine, fact: ReplicaFact | undefined): readonly string[] {
  return [...made.learn({ replicas: new Map([[GATEWAY, fact]]) }).verdicts.keys()];
}

describe("replicas that lag", () => {
  it("are named by a Gateway that stays programmed while one replica serves everything", () => {
    const made = engine();
    expect(programmed(made, GATEWAY)).toEqual(CALM);
    learn(made, { replicas: 2, lagging: ["pod-b"] });
    expect(programmed(made, GATEWAY)).toEqual({
      ...CALM,
      message: `${CALM.message}; 1 of 2 replicas has not confirmed the newest configuration: pod-b`,
    });
    learn(made, undefined);
    expect(programmed(made, GATEWAY)).toEqual(CALM);
  });

  it("turn Programmed to False when all of them lag", () => {
    const made = engine();
    learn(made, { replicas: 2, lagging: ["pod-a", "pod-b"] });
    expect(programmed(made, GATEWAY)).toEqual({
      type: "Programmed",
      status: "False",
      reason: "Pending",
      message: "2 of 2 replicas have not confirmed the newest configuration: pod-a, pod-b",
    });
  });

  it("change the conditions of no object but the Gateway", () => {
    const made = engine();
    expect(learn(made, { replicas: 1, lagging: ["pod-a"] })).toEqual([GATEWAY]);
    expect(programmed(made, CHILD)).toEqual(CALM);
  });

  it("make a message of bounded length", () => {
    const made = engine();
    const lagging = Array.from({ length: 50 }, (_, index) => `pod-${index}`);
    learn(made, { replicas: 100, lagging });
    expect(programmed(made, GATEWAY)).toMatchObject({
      message: expect.stringMatching(/50 of 100 replicas .*: pod-0, pod-1, pod-2 and 47 more$/),
    });
  });

  it("change nothing when Programmed has another reason", () => {
    const made = engine();
    const problem = { reason: "NoResources", message: "no pod of the data plane is ready yet" };
    made.learn({ infrastructure: new Map([[GATEWAY, { addresses: [], problem }]]) });
    learn(made, { replicas: 1, lagging: ["pod-a"] });
    expect(programmed(made, GATEWAY)).toMatchObject({ status: "False", ...problem });
  });
});
