import { stripVTControlCharacters } from "node:util";

/** Cells in columns of equal width, two blanks between them, nothing after the last. */
export function columns(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [index, cell] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, width(cell));
  }
  return rows.map((row) =>
    row
      .map((cell, index) =>
        index === row.length - 1 ? cell : cell + " ".repeat((widths[index] ?? 0) - width(cell)),
      )
      .join("  ")
      .trimEnd(),
  );
}

function width(text: string): number {
  return [...stripVTControlCharacters(text)].length;
}
