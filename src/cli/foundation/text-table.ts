import { printable, shownWidth } from "./terminal.ts";

/** Pads cells to columns, with two blanks between them and no trailing blanks. */
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
