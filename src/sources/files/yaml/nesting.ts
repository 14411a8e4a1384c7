/** Deeper than any Kubernetes object, and shallow enough for a recursive parser. */
const MAX_DEPTH = 200;
/** `- - - …` and `? ? ? …` on one line. */
const MAX_INLINE = 50;

/**
 * The offset where a document nests too deeply for the YAML parser, if there is one. One pass over
 * brackets, indentation and inline indicators estimates the depth, never below the true depth.
 */
export function tooDeepAt(text: string): number | undefined {
  const indents: number[] = [];
  let brackets = 0;
  for (let at = 0; at < text.length; ) {
    const feed = text.indexOf("\n", at);
    const end = feed < 0 ? text.length : feed;
    let indent = at;
    while (indent < end && text.charCodeAt(indent) === 32) indent++;
    if (indent < end) {
      const column = indent - at;
      while (indents.length > 0 && (indents[indents.length - 1] ?? 0) >= column) indents.pop();
      indents.push(column);
      if (indents.length > MAX_DEPTH || inlineDepth(text, indent, end) > MAX_INLINE) return indent;
    }
    for (let i = indent; i < end; i++) {
      const code = text.charCodeAt(i);
      if (code === 91 || code === 123) {
        brackets++;
        if (brackets > MAX_DEPTH) return i;
      } else if ((code === 93 || code === 125) && brackets > 0) brackets--;
    }
    at = end + 1;
  }
  return undefined;
}

function inlineDepth(text: string, from: number, end: number): number {
  let depth = 0;
  for (let i = from; i < end; i++) {
    const code = text.charCodeAt(i);
    if (code === 45 || code === 63 || code === 58) depth++;
    else if (code !== 32 && code !== 9) break;
  }
  return depth;
}
