import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { type AdmissionOptions, admit } from "../../src/api/admission/admit.ts";
import { type FieldError, formatPath } from "../../src/api/admission/schema/field-error.ts";

interface Case {
  readonly name: string;
  readonly object: Record<string, unknown>;
  readonly options?: AdmissionOptions;
  readonly errors?: readonly string[];
  readonly warnings?: readonly string[];
  readonly ignored?: true;
  /** Field path → value it must have afterwards; null for a field that must be gone. */
  readonly becomes?: Readonly<Record<string, unknown>>;
  readonly listeners?: number;
  readonly longHeader?: true;
  readonly longHostnames?: true;
}

const directory = join(import.meta.dirname, "admission-cases");

for (const file of readdirSync(directory).sort()) {
  describe(file, () => {
    const cases = parse(readFileSync(join(directory, file), "utf8"), { merge: true }) as readonly Case[];
    test.each(cases)("$name", (example) => {
      const { resource, ignored, errors, warnings } = admit(inflate(example), example.options);
      expect(errors.map(summary)).toEqual(example.errors ?? []);
      expect(warnings.map(summary)).toEqual(example.warnings ?? []);
      expect(ignored).toBe(example.ignored);
      expect(resource !== undefined).toBe(example.errors === undefined && ignored === undefined);
      for (const [path, value] of Object.entries(example.becomes ?? {})) {
        expect([path, valueAt(resource, path)]).toEqual([path, value ?? undefined]);
      }
      for (const { message, remedy } of [...errors, ...warnings]) {
        expect(message).not.toBe("");
        expect(remedy).toMatch(/^[A-Z].*[.?]$|^Change it so that this rule/);
      }
    });
  });
}

function summary({ path, rule }: FieldError): string {
  return `${formatPath(path)} ${rule}`;
}

/** Cases too long to write out. */
function inflate({ object, listeners, longHeader, longHostnames }: Case): unknown {
  const copy = structuredClone(object) as { spec: Record<string, never> };
  if (listeners !== undefined) {
    const entry = (index: number): unknown => ({ name: `l${index}`, port: index + 1, protocol: "HTTP" });
    return {
      ...copy,
      spec: { ...copy.spec, listeners: Array.from({ length: listeners }, (_, i) => entry(i)) },
    };
  }
  if (longHostnames) {
    const longest = `${"a".repeat(63)}.${"b".repeat(63)}.${"c".repeat(63)}.${"d".repeat(61)}`;
    return { ...copy, spec: { hostnames: [longest, `${longest}e`] } };
  }
  if (longHeader) {
    const value = `${"a".repeat(4000)}\u0001`;
    return {
      ...copy,
      spec: {
        rules: [
          {
            filters: [
              { type: "RequestHeaderModifier", requestHeaderModifier: { set: [{ name: "a", value }] } },
            ],
          },
        ],
      },
    };
  }
  return copy;
}

function valueAt(value: unknown, path: string): unknown {
  const segments = [...path.matchAll(/\["([^"]+)"\]|\[(\d+)\]|([^.[\]]+)/g)].map(
    (m) => m[1] ?? m[2] ?? m[3] ?? "",
  );
  return segments.reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], value);
}
