/** The text of one YAML document: each is parsed alone, so that a mistake affects no other. */
export interface Chunk {
  readonly text: string;
  /** The line of the file that the chunk begins on, from 1. */
  readonly line: number;
}

/**
 * Splits at `---` and `...` lines. At the beginning of a line YAML always takes these as markers,
 * also inside a scalar. Chunks without content (comments, blank lines, directives) are left out.
 */
export function splitDocuments(text: string): readonly Chunk[] {
  const chunks: Chunk[] = [];
  let begin = 0;
  let beginLine = 1;
  let line = 1;
  const close = (end: number): void => {
    const piece = text.slice(begin, end);
    if (hasContent(piece)) chunks.push({ text: piece, line: beginLine });
  };
  for (let at = 0; at < text.length; line++) {
    const next = lineEnd(text, at);
    if (isMarker(text, at, "---")) {
      close(at);
      begin = at;
      beginLine = line;
    } else if (isMarker(text, at, "...")) {
      close(at);
      begin = next;
      beginLine = line + 1;
    }
    at = next;
  }
  close(text.length);
  return chunks;
}

/** Where the next line begins; a line ends with LF or CR LF. */
function lineEnd(text: string, from: number): number {
  const feed = text.indexOf("\n", from);
  return feed < 0 ? text.length : feed + 1;
}

function isMarker(text: string, at: number, marker: string): boolean {
  if (!text.startsWith(marker, at)) return false;
  const after = text[at + marker.length];
  return after === undefined || after === " " || after === "\t" || after === "\n" || after === "\r";
}

function hasContent(piece: string): boolean {
  const body = piece.startsWith("---") ? piece.slice(3) : piece;
  for (let at = 0; at < body.length; ) {
    const next = lineEnd(body, at);
    const line = body.slice(at, Math.min(next, at + 4096)).trim();
    if (line !== "" && !line.startsWith("#") && !line.startsWith("%")) return true;
    at = next;
  }
  return false;
}
