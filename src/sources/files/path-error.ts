import type { DocumentError } from "./yaml/document-error.ts";

const REASONS: Readonly<Partial<Record<string, readonly [message: string, remedy: string]>>> = {
  ENOENT: [
    "there is no such file or folder",
    "Check the path; the file may have been removed while it was read.",
  ],
  ENOTDIR: ["there is no such file or folder", "Check the path: a part of it is a file, not a folder."],
  EACCES: ["may not be read", "Give the user that runs Mergeway the right to read it."],
  EPERM: ["may not be read", "Give the user that runs Mergeway the right to read it."],
  ELOOP: ["is a link that leads back to itself", "Remove or correct the link."],
  EISDIR: ["is a folder, not a file", "Name the files, or the folder by itself."],
  EMFILE: ["too many files are open", "Raise the limit of open files (ulimit -n)."],
};

/** Describes why a path could not be read. */
export function pathError(file: string, error: unknown): DocumentError {
  const code = error instanceof Error && "code" in error ? String(error.code) : "unknown";
  const [message, remedy] = REASONS[code] ?? [
    `could not be read (${code})`,
    "Check the file and its storage.",
  ];
  return { file, line: 1, column: 1, rule: "file/unreadable", message, remedy };
}
