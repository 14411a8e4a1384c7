/**
 * What Envoy is told, without an Envoy: rewriting must come to what the matching code says, and
 * bytes to what was meant.
 */

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  backendOfCluster,
  clusterName,
  listenerOfWord,
  listenerWord,
} from "../../../src/dataplanes/envoy/compile/names.ts";
import { headerChanges } from "../../../src/dataplanes/envoy/compile/routes/header-edits.ts";
import { pathSubstitution } from "../../../src/dataplanes/envoy/compile/routes/path-edits.ts";
import { ruleRetry } from "../../../src/dataplanes/envoy/compile/routes/retries.ts";
import { idleTimeouts } from "../../../src/dataplanes/envoy/compile/routes/rule-routes.ts";
import { encodedForms } from "../../../src/dataplanes/envoy/compile/routes/value-matches.ts";
import { FrameReader, frame } from "../../../src/dataplanes/envoy/wire/grpc-frames.ts";
import {
  explicitText,
  flag,
  message,
  nested,
  read,
  text,
  texts,
  uint,
} from "../../../src/dataplanes/envoy/wire/protobuf.ts";
import { isUnderPrefix } from "../../../src/matching/request-match.ts";
import { editPath } from "../../../src/matching/rewrite.ts";
import type { PathEdit, PathMatch, RetryPolicy } from "../../../src/plan/rule.ts";
import { forwardTo } from "../support/plan-builder.ts";

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

describe("names", () => {
  test("within an Envoy names say neither kind nor Gateway, and still lead back to their items", () => {
    expect(clusterName("infra/edge", "backend:infra/edge:shop/web:80", "h2")).toBe("shop/web:80#h2");
    expect(listenerWord("infra/edge", "listener:infra/edge:ListenerSet/shop/own#a b")).toBe(
      "ListenerSet/shop/own#a%20b",
    );
    const ids = [
      "backend:infra/edge:shop/web:80",
      "listener:infra/edge:Gateway/infra/edge#http",
      // Of other Gateways, or of nobody's making: they must not be taken for the ones above.
      "backend:infra/other:shop/web:80",
      "shop/web:80",
      "Gateway/infra/edge#http",
      "=",
    ];
    const names = ids.map((id) => clusterName("infra/edge", id, "plain"));
    const words = ids.map((id) => listenerWord("infra/edge", id));
    expect(names.map((name) => backendOfCluster("infra/edge", name))).toEqual(ids);
    expect(words.map((word) => listenerOfWord("infra/edge", word))).toEqual(ids);
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
      const option = read(bytes);
      return [option.message(1)?.text(1), option.message(1)?.text(2), option.uint(3)];
    });
    expect(options).toEqual([
      ["b", "100%%", 0],
      ["b", "2", 0],
    ]);
  });
});

describe("retries", () => {
  const granted = (retry: RetryPolicy): Readonly<Record<string, number | string>> => {
    const policy = read(ruleRetry(forwardTo("b", { retry })).policy ?? Buffer.alloc(0));
    const ms = (at: number): number => {
      const interval = policy.message(8)?.message(at);
      return (interval?.uint(1) ?? 0) * 1000 + (interval?.uint(2) ?? 0) / 1e6;
    };
    const retries = policy.message(2)?.uint(1) ?? 0;
    return { on: policy.text(1), retries, firstMs: ms(1), longestMs: ms(2) };
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

describe("the wire", () => {
  test("what is written can be read", () => {
    fc.assert(
      fc.property(fc.string(), fc.array(fc.string()), fc.nat(), fc.boolean(), (one, many, number, yes) => {
        const bytes = message(
          text(1, one),
          texts(2, many),
          nested(3, message(uint(1, number), flag(2, yes))),
          explicitText(4, ""),
        );
        const reader = read(bytes);
        expect(reader.text(1)).toBe(one.toWellFormed());
        expect(reader.texts(2)).toEqual(many.map((each) => each.toWellFormed()));
        expect(reader.message(3)?.uint(1)).toBe(number);
        expect(reader.message(3)?.uint(2)).toBe(yes ? 1 : 0);
        expect(reader.texts(4)).toEqual([""]);
      }),
    );
  });

  test("messages are whole whatever the chunks, and too long or broken ones are refused", () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 5 }),
        fc.integer({ min: 1, max: 17 }),
        (messages, size) => {
          const bytes = Buffer.concat(messages.map(frame));
          const reader = new FrameReader(1000);
          const got: Buffer[] = [];
          for (let at = 0; at < bytes.length; at += size)
            got.push(...reader.push(bytes.subarray(at, at + size)));
          expect(got.map((each) => [...each])).toEqual(messages.map((each) => [...each]));
        },
      ),
    );
    expect(() => new FrameReader(3).push(frame(Buffer.alloc(4)))).toThrow(RangeError);
    expect(() => read(Buffer.from([0x0a, 5, 1]))).toThrow(RangeError);
  });
});
