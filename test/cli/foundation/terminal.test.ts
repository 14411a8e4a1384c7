import { describe, expect, test } from "vitest";
import { linesOf, printable, terminalOn, wantsColours } from "../../../src/cli/foundation/terminal.ts";
import { columns } from "../../../src/cli/foundation/text-table.ts";

describe("a terminal", () => {
  const written = (write: (terminal: ReturnType<typeof terminalOn>) => void, colours: boolean): string => {
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

  test("writes its own styles and escapes sequences in the text", () => {
    const write = (terminal: ReturnType<typeof terminalOn>): void =>
      terminal.line(`${terminal.style("red", "a\x1b[0mb")} c\nd`);
    expect(written(write, true)).toBe("\x1b[31ma\\u001b[0mb\x1b[39m c\\nd\n");
    expect(written(write, false)).toBe("a\\u001b[0mb c\\nd\n");
  });

  test("keeps line feeds and tabs of a document and escapes other control characters", () => {
    expect(written((terminal) => terminal.write('{\n\t"a": "\x7f"\n}\n'), true)).toBe(
      '{\n\t"a": "\\u007f"\n}\n',
    );
    expect(linesOf(["a\nb", "c"])).toBe("a\\nb\nc\n");
    expect(printable("plain ünïcode 日本 👩‍👩‍👧")).toBe("plain ünïcode 日本 👩‍👩‍👧");
  });

  test("aligns columns by the characters that are shown", () => {
    const terminal = terminalOn(() => {}, { isTty: true, env: {} });
    const rows = columns([
      [terminal.style("bold", "a\n"), "b"],
      ["ccccc", "d"],
    ]);
    expect(rows.map((row) => written((each) => each.line(row), false))).toEqual([
      "\x1b[1ma\\n\x1b[22m    b\n",
      "ccccc  d\n",
    ]);
  });
});

test.each([
  [{ isTty: true, env: {} }, true],
  [{ isTty: false, env: {} }, false],
  [{ isTty: true, env: { NO_COLOR: "1" } }, false],
  [{ isTty: true, env: { NO_COLOR: "" } }, true],
  [{ isTty: true, env: { TERM: "dumb" } }, false],
  [{ isTty: false, env: { FORCE_COLOR: "1" } }, true],
  [{ isTty: true, env: { FORCE_COLOR: "0" } }, false],
  [{ isTty: true, env: { FORCE_COLOR: "1", NO_COLOR: "1" } }, false],
])("%j: colours are wanted: %j", (settings, wanted) => {
  expect(wantsColours(settings)).toBe(wanted);
});
