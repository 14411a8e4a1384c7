/**
 * Whatever a manifest, a file's name or an argument says: it is shown, and never acts on the
 * terminal or begins a line.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { linesOf, printable, terminalOn } from "../../src/cli/foundation/terminal.ts";
import { columns } from "../../src/cli/foundation/text-table.ts";
import { folder, freePorts, mergeway, type Outcome, start } from "./mergeway.ts";

/**
 * Clears a screen, is red, begins a line, goes back to its beginning, is a C1 control, reverses the
 * direction.
 */
const HOSTILE = "x\x1b[2J\x1b[31mINJECTED\nINJECTED\rINJECTED\x9b2J\x7f\u202eINJECTED\u2028INJECTED";
const ESCAPE = "\x1b";
const OWN_STYLES = new RegExp(`${ESCAPE}\\[(?:1|2|22|31|32|33|36|39)m`, "g");
/** In YAML, which takes no control character but in an escape. */
const TEXT = JSON.stringify(HOSTILE).replace(
  /[^ -~]/g,
  (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
);

function manifests(port: number): Readonly<Record<string, string>> {
  const gateway = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: shared, namespace: infra }
spec:
  gatewayClassName: mergeway
  listeners: [{ name: web, port: ${port}, protocol: HTTP, allowedRoutes: { namespaces: { from: All } } }]
`;
  const route = (name: string, spec: string): string => `---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: ${name}, namespace: infra }
spec: { parentRefs: [{ name: shared }], ${spec} }
`;
  return {
    "gateway.yaml": gateway,
    // Valid as it is: the API bounds only the length of this one.
    "query.yaml": route("by-query", `rules: [{ matches: [{ queryParams: [{ name: a, value: ${TEXT} }] }] }]`),
    "values.yaml":
      route("by-header", `rules: [{ matches: [{ headers: [{ name: x-a, value: ${TEXT} }] }] }]`) +
      route("by-path", `rules: [{ matches: [{ path: { type: RegularExpression, value: ${TEXT} } }] }]`) +
      route(
        "set",
        `rules: [{ filters: [{ type: RequestHeaderModifier, requestHeaderModifier: { set: [{ name: x-a, value: ${TEXT} }] } }] }]`,
      ),
    "names.yaml":
      gateway.replace("name: shared", `name: ${TEXT}`) +
      route(TEXT, "rules: []") +
      route("host", `hostnames: [${TEXT}]`) +
      route("parent", "rules: []").replace("{ name: shared }", `{ name: ${TEXT}, sectionName: ${TEXT} }`) +
      route("field", `${TEXT}: 1`) +
      route("backend", `rules: [{ backendRefs: [{ name: ${TEXT}, port: 80 }] }]`),
    "kinds.yaml": `apiVersion: ${TEXT}\nkind: ${TEXT}\nmetadata: { name: ${TEXT}, namespace: ${TEXT} }\n`,
    "secret.yaml": `apiVersion: v1\nkind: Secret\nmetadata: { name: s, namespace: infra }\ndata: { ${TEXT}: "%" }\n`,
    "broken.yaml": `a: ${TEXT}: ${TEXT}\n`,
    [`${HOSTILE.replaceAll("\0", "")}.yaml`]: "kind: [\n",
  };
}

function expectHarmless(text: string, what: string): void {
  const shown = text.replaceAll(OWN_STYLES, "");
  expect(
    [...(shown.match(/[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/gu) ?? [])].filter((each) => each !== "\n"),
    what,
  ).toEqual([]);
  expect(text, what).not.toContain("\x1b[31mINJECTED");
  // A string of YAML may go on in the next line, further in than its key.
  expect(shown, what).not.toMatch(what.endsWith("YAML") ? /^INJECTED/m : /^\s*INJECTED/m);
}

describe("text of others", () => {
  test.each<[string, readonly string[]]>([
    ["status", ["status"]],
    ["status as a table", ["status", "-o", "wide"]],
    ["status as YAML", ["status", "-o", "yaml"]],
    ["status as JSON", ["status", "-o", "json"]],
    ["check", ["check"]],
    ["check as JSON", ["check", "--format", "json"]],
    ["check as SARIF", ["check", "--format", "sarif"]],
    ["check for GitHub", ["check", "--format", "github"]],
    ["tunnel render", ["tunnel", "render"]],
  ])("is harmless in %s", async (name, command) => {
    const path = folder(manifests(80));
    for (const env of [{ FORCE_COLOR: "1" }, { NO_COLOR: "1" }]) {
      const outcome = await mergeway([...command, path], { env });
      expectOutput(outcome, name);
    }
  });

  test("is harmless in explain, with what was asked for and what it was compared with", async () => {
    const path = folder(manifests(80));
    for (const env of [{ FORCE_COLOR: "1" }, { NO_COLOR: "1" }]) {
      const asked = ["explain", "http://a.example/?a=b", "-f", path, "-H", "x-a: other"];
      expectOutput(await mergeway(asked, { env }), "explain");
      expectOutput(await mergeway([...asked, "--json"], { env }), "explain --json");
      const strange = await mergeway(["explain", `http://a.example/${HOSTILE}`, "-f", path], { env });
      expectHarmless(strange.stdout + strange.stderr, "explain of a strange URL");
    }
  });

  test("is harmless in messages about the command line", async () => {
    for (const args of [[HOSTILE], ["status", HOSTILE], ["check", `--${HOSTILE}`]]) {
      const { code, stderr, stdout } = await mergeway(args, { env: { FORCE_COLOR: "1" } });
      expect(code).toBe(2);
      expectHarmless(stdout + stderr, args.join(" "));
    }
  });

  test("is harmless in what run prints at its start and of changes", async () => {
    const [port = 0] = await freePorts(1);
    const files = manifests(port);
    const path = folder({ "gateway.yaml": files["gateway.yaml"] ?? "" });
    const running = start(
      ["run", path, "--address", "127.0.0.1", "--admin-address", "off", "--workers", "0"],
      { env: { FORCE_COLOR: "1" } },
    );
    await running.prints(/listeners served/);
    for (const [name, text] of Object.entries(files)) writeFileSync(join(path, name), text);
    await running.prints(/HTTPRoute infra\/by-query/);
    await running.prints(/names\.yaml/);
    expectHarmless(running.stdout() + running.stderr(), "run");
  });
});

function expectOutput({ stdout, stderr }: Outcome, what: string): void {
  expect(stdout + stderr, what).toContain("INJECTED");
  expectHarmless(stdout + stderr, what);
}

describe("a terminal", () => {
  const said = (write: (terminal: ReturnType<typeof terminalOn>) => void, colours: boolean): string => {
    let text = "";
    write(
      terminalOn(
        (piece) => {
          text += piece;
        },
        { isTty: colours, env: {} },
      ),
    );
    return text;
  };

  test("keeps its own styles and shows those of others", () => {
    const write = (terminal: ReturnType<typeof terminalOn>): void =>
      terminal.line(`${terminal.style("red", "a\x1b[0mb")} c\nd`);
    expect(said(write, true)).toBe("\x1b[31ma\\u001b[0mb\x1b[39m c\\nd\n");
    expect(said(write, false)).toBe("a\\u001b[0mb c\\nd\n");
  });

  test("keeps the lines of a document, and nothing else that acts", () => {
    expect(said((terminal) => terminal.write('{\n\t"a": "\x7f"\n}\n'), true)).toBe(
      '{\n\t"a": "\\u007f"\n}\n',
    );
    expect(linesOf(["a\nb", "c"])).toBe("a\\nb\nc\n");
    expect(printable("plain ünïcode 日本 👩‍👩‍👧")).toBe("plain ünïcode 日本 👩‍👩‍👧");
  });

  test("measures what is shown", () => {
    const terminal = terminalOn(() => {}, { isTty: true, env: {} });
    const rows = columns([
      [terminal.style("bold", "a\n"), "b"],
      ["ccccc", "d"],
    ]);
    expect(rows.map((row) => said((each) => each.line(row), false))).toEqual([
      "\x1b[1ma\\n\x1b[22m    b\n",
      "ccccc  d\n",
    ]);
  });
});
