/** What Envoy is told of a rule must come to what the matching code says. */

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { headerChanges } from "../../../../../src/dataplanes/envoy/compile/routes/header-edits.ts";
import { pathSubstitution } from "../../../../../src/dataplanes/envoy/compile/routes/path-edits.ts";
import { ruleRetry } from "../../../../../src/dataplanes/envoy/compile/routes/retries.ts";
import { idleTimeouts } from "../../../../../src/dataplanes/envoy/compile/routes/rule-routes.ts";
import { encodedForms } from "../../../../../src/dataplanes/envoy/compile/routes/value-matches.ts";
import * as proto from "../../../../../src/dataplanes/envoy/wire/proto.ts";
import { read } from "../../../../../src/dataplanes/envoy/wire/protobuf.ts";
import { isUnderPrefix } from "../../../../../src/matching/request-match.ts";
import { editPath } from "../../../../../src/matching/rewrite.ts";
import type { PathEdit, PathMatch, RetryPolicy } from "../../../../../src/plan/rule.ts";
import { forwardTo } from "../../../support/plan-builder.ts";

const element = fc.stringMatching(/^[a-z.+()$\\]{0,3}$/);
const path = fc.array(element, { maxLength: 4 }).map((elements) => `/${elements.join("/")}`);

describe("paths", () => {
  test("a substitution does what editPath does", () => {
    fc.assert(
      fc.property(path, path, path, fc.constantFrom("full", "prefix"), (prefix, rest, value, type) => {
        const matched: PathMatch = { type: "prefix", value: prefix };
        const request = prefix.endsWith("/") ? prefix + rest.slice(1) : prefix + (rest === "/" ? "" : rest);
        fc.pre(isUnderPrefix(request, prefix));
        const edit: PathEdit = { type, value };
        const found = pathSubstitution(edit, matched);
        // RE2's replacement knows backslashes only, JavaScript's dollars only.
        const replacement = found?.replacement.replaceAll("\\\\", "\\").replaceAll("$", "$$$$") ?? "";
        const result =
          found === undefined ? request : request.replace(new RegExp(found.pattern), replacement);
        expect(result).toBe(editPath(request, edit, matched));
      }),
    );
  });
});

describe("query parameters", () => {
  /** Each character plain if it may be, or as its bytes. */
  const writings = fc.array(fc.tuple(fc.string({ unit: "grapheme", maxLength: 1 }), fc.nat({ max: 3 })));

  function written(parts: readonly (readonly [character: string, way: number])[]): string {
    return parts
      .map(([character, way]) => {
        const bytes = [...Buffer.from(character)]
          .map((byte) => `%${byte.toString(16).padStart(2, "0")}`)
          .join("");
        if (character === " " && way === 0) return "+";
        if (way < 2 && !/[&#+% ]/.test(character)) return character;
        return way === 2 ? bytes : bytes.toUpperCase();
      })
      .join("");
  }

  test("an exact value is met in every way to write it, and only then", () => {
    fc.assert(
      fc.property(writings, fc.oneof(writings, fc.constant([])), (parts, others) => {
        const text = written(parts);
        const value = new URLSearchParams(`&v=${text}`).get("v") ?? "";
        const pattern = new RegExp(`^(?:${encodedForms(value)})$`, "s");
        expect(text).toMatch(pattern);
        const other = written(others);
        expect(pattern.test(other)).toBe((new URLSearchParams(`&v=${other}`).get("v") ?? "") === value);
      }),
    );
  });
});

describe("headers", () => {
  test("edits of a rule and of its backend come to one outcome per name", () => {
    const { changes, host } = headerChanges(
      [
        { op: "set", name: "a", value: "1" },
        { op: "add", name: "b", value: "100%" },
        { op: "set", name: "host", value: "rule.example" },
      ],
      [
        { op: "remove", name: "a" },
        { op: "add", name: "b", value: "2" },
        { op: "set", name: "content-length", value: "0" },
      ],
    );
    expect(host).toBe("rule.example");
    expect(changes?.remove).toEqual(["a"]);
    const options = changes?.options.map((bytes) => {
      const option = read<proto.HeaderValueOption>(bytes);
      const header = option.message(proto.HeaderValueOption.header);
      return [
        header?.text(proto.HeaderValue.key),
        header?.text(proto.HeaderValue.value),
        option.uint(proto.HeaderValueOption.appendAction),
      ];
    });
    expect(options).toEqual([
      ["b", "100%%", 0],
      ["b", "2", 0],
    ]);
  });
});

describe("retries", () => {
  const granted = (retry: RetryPolicy): Readonly<Record<string, number | string>> => {
    const policy = read<proto.RetryPolicy>(ruleRetry(forwardTo("b", { retry })).policy ?? Buffer.alloc(0));
    const { baseInterval, maxInterval } = proto.RetryBackOff;
    const ms = (field: typeof baseInterval): number => {
      const interval = policy.message(proto.RetryPolicy.retryBackOff)?.message(field);
      const { seconds, nanos } = proto.Duration;
      return (interval?.uint(seconds) ?? 0) * 1000 + (interval?.uint(nanos) ?? 0) / 1e6;
    };
    const retries = policy.message(proto.RetryPolicy.numRetries)?.uint(proto.UInt32Value.value) ?? 0;
    const on = policy.text(proto.RetryPolicy.retryOn);
    return { on, retries, firstMs: ms(baseInterval), longestMs: ms(maxInterval) };
  };

  test("whatever a route asks for, its attempts, their pauses and all pauses together have bounds", () => {
    const on = "connect-failure,refused-stream,reset,retriable-status-codes";
    expect(granted({ attempts: 1_000_000, codes: [], backoffMs: 0 })).toEqual({
      on,
      retries: 10,
      firstMs: 10,
      longestMs: 100,
    });
    expect(granted({ attempts: 2, codes: [] })).toEqual({ on, retries: 2, firstMs: 25, longestMs: 250 });
    const patient = granted({ attempts: 10, codes: [], backoffMs: 3_600_000 });
    expect(patient).toEqual({ on, retries: 10, firstMs: 6_000, longestMs: 6_000 });
  });
});

describe("timeouts", () => {
  test("the listener's limit for idle streams never comes before a route's own timeouts", () => {
    expect(idleTimeouts({})).toBeUndefined();
    expect(idleTimeouts({ requestMs: 60_000 })).toBeUndefined();
    expect(idleTimeouts({ requestMs: 300_000 })?.streamMs).toBeGreaterThan(300_000);
    expect(idleTimeouts({ requestMs: 90_000, backendRequestMs: 900_000 })?.streamMs).toBeGreaterThan(900_000);
    expect(idleTimeouts({ unbounded: true })?.streamMs).toBeGreaterThanOrEqual(3_600_000);
  });
});
