/**
 * Statuses as files, one per object: `<kind>/<namespace>/<name>.yaml`. Replaced as a whole, and
 * only when something changed.
 */
import { readFileSync } from "node:fs";
import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { parse, stringify } from "yaml";
import { type Key, partsOf } from "../../api/key.ts";
import type { Resource } from "../../api/resource.ts";
import { DEFAULT_CONTROLLER } from "../../engine/foundation/settings.ts";
import type { ObjectVerdict } from "../../engine/verdicts/verdicts.ts";
import { renderStatus } from "../../status/render.ts";
import type { Logger } from "./logger.ts";

export interface StatusFilesOptions {
  readonly directory: string;
  readonly logger: Logger;
  now(): Date;
}

type Status = Readonly<Record<string, unknown>>;

export class StatusFiles {
  readonly #options: StatusFilesOptions;
  readonly #written: Map<Key, { readonly text: string; readonly status: Status }> = new Map();
  readonly #dirty: Map<
    Key,
    { readonly resource: Resource | undefined; readonly verdict: ObjectVerdict | undefined }
  > = new Map();
  #work: Promise<void> | undefined;

  constructor(options: StatusFilesOptions) {
    this.#options = options;
  }

  update(verdicts: ReadonlyMap<Key, ObjectVerdict | undefined>, resources: ReadonlyMap<Key, Resource>): void {
    for (const [key, verdict] of verdicts) this.#dirty.set(key, { resource: resources.get(key), verdict });
    this.#work ??= this.#flush();
  }

  /** Resolves when everything that is known is on disk. */
  async written(): Promise<void> {
    await this.#work;
  }

  async #flush(): Promise<void> {
    // Many steps may follow each other at once: what a moment later is different is not worth
    // writing.
    await new Promise((resolve) => setImmediate(resolve));
    for (const [key, { resource, verdict }] of this.#dirty) {
      this.#dirty.delete(key);
      try {
        if (resource === undefined || verdict === undefined) await this.#remove(key);
        else await this.#write(key, resource, verdict);
      } catch (error) {
        const message = `the status of ${key} could not be written: ${(error as Error).message}`;
        this.#options.logger.error(message, { event: "status-file", key });
      }
    }
    this.#work = undefined;
  }

  async #write(key: Key, resource: Resource, verdict: ObjectVerdict): Promise<void> {
    const before = (this.#written.get(key)?.status ?? this.earlier(key)) as never;
    const now = `${this.#options.now().toISOString().slice(0, 19)}Z`;
    const status = renderStatus({ ...resource, status: before } as Resource, verdict, {
      controllerName: DEFAULT_CONTROLLER,
      now,
    });
    const { apiVersion, kind, metadata } = resource;
    const { namespace, name, generation } = metadata;
    const object = { apiVersion, kind, metadata: { name, namespace, generation }, status };
    const text = stringify(object, { aliasDuplicateObjects: false, lineWidth: 0 });
    if (this.#written.get(key)?.text === text) return;
    const file = this.#fileOf(key);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(`${file}.new`, text);
    await rename(`${file}.new`, file);
    this.#written.set(key, { text, status });
  }

  async #remove(key: Key): Promise<void> {
    this.#written.delete(key);
    await rm(this.#fileOf(key), { force: true });
  }

  /**
   * What an earlier run has written: times of conditions, and ports that were assigned, go on from
   * there.
   */
  earlier(key: Key): Status | undefined {
    try {
      const object = parse(readFileSync(this.#fileOf(key), "utf8")) as { readonly status?: Status } | null;
      return object?.status;
    } catch {
      return undefined;
    }
  }

  #fileOf(key: Key): string {
    const { kind, namespace, name } = partsOf(key);
    return join(this.#options.directory, kind.toLowerCase(), namespace, `${name}.yaml`);
  }
}
