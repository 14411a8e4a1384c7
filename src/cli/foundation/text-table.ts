import { printable, shownWidth } from "./terminal.ts";

/** Cells in columns of equal width, two blanks between them, nothing after the last. */
export function columns(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [index, cell] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, shownWidth(cell));
  }
  return rows.map((row) =>
    row
      .map((cell, index) =>
        index === row.length - 1 ? cell : cell + " ".repeat((widths[index] ?? 0) - shownWidth(cell)),
      )
      .map(printable)
      .join("  ")
      .trimEnd(),
  );
}
