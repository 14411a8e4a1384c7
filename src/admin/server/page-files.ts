/**
 * The files of the page (src/page). In the package they are JavaScript; in a checkout their types
 * are stripped when somebody first asks, so that nothing has to be built.
 */
import { readdirSync, readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { FileBody } from "./endpoint.ts";

/** Beside `admin`, in src as in dist. */
const FOLDER = fileURLToPath(new URL("../../page", import.meta.url));

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html",
  ".css": "text/css",
  ".js": "text/javascript",
  ".ts": "text/javascript",
};

export class PageFiles {
  #files: ReadonlyMap<string, FileBody> | undefined;

  /** Only what is in the folder can be asked for: a path of the client opens no file. */
  get(path: string): FileBody | undefined {
    this.#files ??= readAll();
    return this.#files.get(path === "/" ? "/page/index.html" : path);
  }
}

function readAll(): ReadonlyMap<string, FileBody> {
  const files = new Map<string, FileBody>();
  for (const name of readdirSync(FOLDER, { recursive: true, encoding: "utf8" })) {
    const contentType = CONTENT_TYPES[extname(name)];
    if (contentType === undefined) continue;
    const text = readFileSync(join(FOLDER, name), "utf8");
    if (extname(name) === ".ts") {
      files.set(`/page/${name.replace(/\.ts$/, ".js")}`, { contentType, text: javaScriptOf(text) });
    } else files.set(`/page/${name}`, { contentType, text });
  }
  return files;
}

/** As tsc writes it: without types, and with imports of `.js`. */
function javaScriptOf(text: string): string {
  return withoutWarnings(() => stripTypeScriptTypes(text)).replaceAll(
    /((?:from|import)\s+"\.[^"]+)\.ts"/g,
    '$1.js"',
  );
}

/** Node warns that its function is experimental. That is no news to whoever looks at the page. */
function withoutWarnings<T>(call: () => T): T {
  const { emitWarning } = process;
  process.emitWarning = () => undefined;
  try {
    return call();
  } finally {
    process.emitWarning = emitWarning;
  }
}
