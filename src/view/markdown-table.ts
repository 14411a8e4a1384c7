/** A table of Markdown with aligned columns, as the formatter of this repository writes them. */
export function markdownTable(rows: readonly (readonly string[])[]): string[] {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [index, cell] of row.entries()) widths[index] = Math.max(widths[index] ?? 3, width(cell));
  }
  const [head, ...body] = rows.map((row) =>
    line(row.map((cell, index) => cell + " ".repeat((widths[index] ?? 0) - width(cell)))),
  );
  return head === undefined ? [] : [head, line(widths.map((count) => "-".repeat(count))), ...body];
}

function line(cells: readonly string[]): string {
  return `| ${cells.join(" | ")} |`;
}

function width(text: string): number {
  return [...text].length;
}
