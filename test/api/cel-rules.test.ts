import { describe, expect, test } from "vitest";
import { withChildGateways } from "../../src/api/admission/child-gateways.ts";
import { type Channel, knownKinds } from "../../src/api/admission/kinds.ts";
import { compileRule, isTransitionRule } from "../../src/api/admission/schema/cel.ts";
import type { Schema, ValidationRule } from "../../src/api/admission/schema/schema.ts";
import { fullSample, walkSchema } from "./schema-samples.ts";

interface Found {
  readonly place: string;
  readonly rule: ValidationRule;
  readonly node: Schema;
}

function rulesOf(channel: Channel): readonly Found[] {
  const found = new Map<string, Found>();
  for (const { kind, served } of knownKinds(channel)) {
    for (const { schema } of served) {
      walkSchema(kind === "Gateway" ? withChildGateways(schema) : schema, (node, path) => {
        for (const rule of node["x-kubernetes-validations"] ?? []) {
          found.set(`${kind} ${rule.rule}`, { place: `${kind}${path}`, rule, node });
        }
      });
    }
  }
  return [...found.values()];
}

describe.each(["standard", "experimental"] as const)("CEL rules of the %s channel", (channel) => {
  const rules = rulesOf(channel);

  test("there are as many as expected", () => {
    expect(rules.length).toBeGreaterThan(100);
  });

  // With every field there, only a function or operator that the evaluator lacks can leave a rule
  // undecided.
  test.each(rules.filter(({ rule }) => !isTransitionRule(rule)))(
    "$place: $rule.message",
    ({ rule, node }) => {
      expect(compileRule(rule)(fullSample(node))).not.toBe("undecidable");
    },
  );

  test("the only rule about an earlier version is that of controllerName", () => {
    const places = rules.filter(({ rule }) => isTransitionRule(rule)).map(({ place }) => place);
    expect(places).toEqual(["GatewayClass.spec.controllerName"]);
  });
});

describe("functions of Kubernetes", () => {
  const holds = (rule: string, self: unknown): string => compileRule({ rule, message: "" })(self);

  test.each([
    ["isIP(self)", "192.0.2.1", "holds"],
    ["isIP(self)", "2001:db8::1", "holds"],
    ["isIP(self)", "192.0.2.01", "broken"],
    ["isIP(self)", "a.example", "broken"],
    ["format.dns1123Subdomain().validate(self).hasValue()", "a.example", "broken"],
    ["format.dns1123Subdomain().validate(self).hasValue()", "A", "holds"],
    ["format.qualifiedName().validate(self).hasValue()", "a.b/C_d", "broken"],
    ["self.matches('^(?i)[a-z]+$')", "ABC", "holds"],
    ["self.matches('b')", "abc", "holds"],
    ["has(self[0].a)", [{ a: 1 }], "holds"],
    ["has(self[0].toString)", [{ a: 1 }], "broken"],
    ["has(self.__namespace__) && self.__namespace__ == 'x'", { namespace: "x" }, "holds"],
    ["self.a == 0", { a: 0 }, "holds"],
    ["self.a <= self.b", { a: 2, b: 1 }, "broken"],
    ["self.a == 'x'", {}, "undecidable"],
    ["size(self) == 1", "\u{1f600}", "holds"],
    ["duration(self) > duration('1m')", "1m1ms", "holds"],
  ])("%s of %j %s", (rule, self, verdict) => {
    expect(holds(rule, self)).toBe(verdict);
  });

  test("a rule that cannot be parsed is a bug, not a finding", () => {
    expect(() => compileRule({ rule: "self.", message: "" })).toThrow();
    expect(() => compileRule({ rule: "noSuchFunction(self)", message: "" })).toThrow();
  });
});
