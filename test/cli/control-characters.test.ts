/** Text of manifests, file names and arguments is shown escaped: it cannot act on a terminal. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { folder, freePorts, mergeway, type Outcome, start } from "./mergeway.ts";

/** Clears the screen, sets red, LF, CR, a C1 control, DEL, right-to-left override, U+2028. */
const HOSTILE = "x\x1b[2J\x1b[31mINJECTED\nINJECTED\rINJECTED\x9b2J\x7f\u202eINJECTED\u2028INJECTED";
const ESCAPE = "\x1b";
const OWN_STYLES = new RegExp(`${ESCAPE}\\[(?:1|2|22|31|32|33|36|39)m`, "g");
/** The same text escaped for YAML, which allows no control characters. */
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
    // Valid: the API limits only the length of this value.
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
  // A multi-line string of YAML continues on an indented line.
  expect(shown, what).not.toMatch(what.endsWith("YAML") ? /^INJECTED/m : /^\s*INJECTED/m);
}

describe("untrusted text", () => {
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
  ])("is escaped in the output of %s", async (name, command) => {
    const path = folder(manifests(80));
    for (const env of [{ FORCE_COLOR: "1" }, { NO_COLOR: "1" }]) {
      const outcome = await mergeway([...command, path], { env });
      expectOutput(outcome, name);
    }
  });

  test("is escaped in explain, both in the request and in the values it is compared with", async () => {
    const path = folder(manifests(80));
    for (const env of [{ FORCE_COLOR: "1" }, { NO_COLOR: "1" }]) {
      const args = ["explain", "http://a.example/?a=b", "-f", path, "-H", "x-a: other"];
      expectOutput(await mergeway(args, { env }), "explain");
      expectOutput(await mergeway([...args, "--json"], { env }), "explain --json");
      const hostile = await mergeway(["explain", `http://a.example/${HOSTILE}`, "-f", path], { env });
      expectHarmless(hostile.stdout + hostile.stderr, "explain of a hostile URL");
    }
  });

  test("is escaped in messages about the command line", async () => {
    for (const args of [[HOSTILE], ["status", HOSTILE], ["check", `--${HOSTILE}`]]) {
      const { code, stderr, stdout } = await mergeway(args, { env: { FORCE_COLOR: "1" } });
      expect(code).toBe(2);
      expectHarmless(stdout + stderr, args.join(" "));
    }
  });

  test("is escaped in what run prints at the start and about changes", async () => {
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
