/** One paragraph of Markdown at 100 columns, as all prose of this repository is wrapped. */
export function wrapProse(text: string): string[] {
  const lines: string[] = [];
  for (const word of text.split(/\s+/)) {
    const line = lines.at(-1);
    const fits = line !== undefined && line.length + 1 + word.length <= COLUMNS;
    // Such a word would turn a line that it begins into a list item or a heading.
    if (line !== undefined && (fits || STARTS_BLOCK.test(word))) lines[lines.length - 1] = `${line} ${word}`;
    else lines.push(word);
  }
  return lines;
}

const COLUMNS = 100;
const STARTS_BLOCK = /^([-*+>]|#+|\d+[.)])$/;
