/**
 * Writes down who uses which hostnames, where a TenantPolicy holds claims: the parameters of the
 * admission policy that refuses a name to all others, and their history.
 *
 * - Level-triggered: what is in the cluster is watched, compared with what should be there, and
 *   written again until both agree, whoever has changed or deleted it.
 * - Gathered: changes of a second are one write of each shard that they are in.
 * - A new leader goes on from what is in the cluster, so that history survives restarts.
 *
 * Every replica follows the engine. Only the leader calls `run`.
 */
import { isDeepStrictEqual } from "node:util";
import type { HostnameClaimsSpec } from "../../api/hostname-claims.ts";
import { type Key, partsOf } from "../../api/key.ts";
import type { Engine } from "../../engine/engine.ts";
import type { UsedHostname } from "../../engine/listeners/claims.ts";
import { ApiError, hasStatus } from "../../kubernetes/api-error.ts";
import type { ApiObject } from "../../kubernetes/api-object.ts";
import { Backoff, pause } from "../../kubernetes/backoff.ts";
import type { KubernetesClient } from "../../kubernetes/client.ts";
import { type ListWatchTiming, listWatch } from "../../kubernetes/list-watch.ts";
import type { KubernetesObserver } from "../../kubernetes/observer.ts";
import {
  claimPath,
  claimsObject,
  claimsPath,
  claimsSpecOf,
  isWrittenBy,
  shardName,
  shardOf,
} from "./claim-objects.ts";
import { GatewayClaims, type ShardNames } from "./gateway-claims.ts";

export interface ClaimWriterOptions {
  readonly client: KubernetesClient;
  readonly controllerName: string;
  /** Empty for the whole cluster. */
  readonly watchNamespaces: readonly string[];
  readonly engine: Pick<Engine, "claimHolds" | "changedClaims">;
  /** Of a Gateway. */
  readonly uidOf: (gateway: Key) => string | undefined;
  readonly referenceOf: (gateway: Key, hostname: string) => string;
  /** Told when claims of a Gateway are in the cluster, or why they are not. */
  readonly onFact: (gateway: Key, problem: string | undefined) => void;
  readonly observer?: KubernetesObserver;
  readonly timing?: Partial<ClaimTiming>;
}

interface ClaimTiming extends ListWatchTiming {
  readonly gatherMs: number;
  /** How long until it is asked again whether the kind exists. */
  readonly absentMs: number;
}

export interface ClaimCount {
  readonly gateway: Key;
  readonly held: number;
  readonly unheld: number;
}

const GATHER_MS = 1_000;
const ABSENT_MS = 30_000;

export class ClaimWriter {
  readonly #options: ClaimWriterOptions;
  readonly #claims = new Map<Key, Map<string, UsedHostname>>();
  readonly #books = new Map<Key, GatewayClaims>();
  /** Objects of the cluster, by `namespace/name`. */
  readonly #observed = new Map<string, ApiObject>();
  /** Versions of objects that are as they should be. */
  readonly #agreed = new Map<string, string | undefined>();
  #holds = "";
  #wake: (() => void) | undefined;
  #isDue = true;

  constructor(options: ClaimWriterOptions) {
    this.#options = options;
  }

  /** Takes what the engine's last step has changed. */
  follow(): void {
    const now = timestamp();
    for (const [place, claim] of this.#options.engine.changedClaims()) {
      const [gateway = "", hostname = ""] = place.split("|");
      const names = this.#claims.get(gateway) ?? new Map<string, UsedHostname>();
      this.#claims.set(gateway, names);
      if (claim === undefined) names.delete(hostname || "*");
      else names.set(hostname || "*", claim);
      if (names.size === 0) this.#claims.delete(gateway);
      this.#books.get(gateway)?.update(hostname || "*", claim, now);
      this.#notice();
    }
    const holds = JSON.stringify([...this.#options.engine.claimHolds()]);
    if (holds === this.#holds) return;
    this.#holds = holds;
    this.#notice();
  }

  counts(): readonly ClaimCount[] {
    return Array.from(this.#books, ([gateway, book]) => {
      const held = [...(this.#claims.get(gateway)?.values() ?? [])].filter((each) => each.holders.length > 0);
      return { gateway, held: held.length - book.unheld, unheld: book.unheld };
    });
  }

  /** Writes while this replica leads. */
  async run(signal: AbortSignal): Promise<void> {
    const { watchNamespaces } = this.#options;
    const places = watchNamespaces.length === 0 ? [undefined] : watchNamespaces;
    const listed = new Set<string | undefined>();
    const watching = places.map((namespace) => this.#watch(namespace, () => listed.add(namespace), signal));
    const trouble = new Backoff({ firstMs: 500, mostMs: 30_000 });
    this.#isDue = true;
    while (await this.#due(signal)) {
      if (listed.size < places.length) continue;
      try {
        await this.#write(signal);
        trouble.reset();
      } catch (error) {
        if (signal.aborted) break;
        this.#tell(ApiError.fromFailure("HostnameClaims", error).message);
        await pause(trouble.next(), signal);
        this.#notice();
      }
    }
    await Promise.all(watching);
    for (const memory of [this.#books, this.#observed, this.#agreed]) memory.clear();
  }

  #notice(): void {
    this.#isDue = true;
    this.#wake?.();
  }

  /** Waits until there may be something to write, and then for what comes with it. */
  async #due(signal: AbortSignal): Promise<boolean> {
    if (!this.#isDue && !signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      signal.addEventListener("abort", () => resolve(), { once: true });
      await promise;
      this.#wake = undefined;
    }
    if (!(await pause(this.#options.timing?.gatherMs ?? GATHER_MS, signal))) return false;
    this.#isDue = false;
    return !signal.aborted;
  }

  async #watch(namespace: string | undefined, onListed: () => void, signal: AbortSignal): Promise<void> {
    const { client, observer, timing } = this.#options;
    const isHere = (id: string): boolean => namespace === undefined || id.startsWith(`${namespace}/`);
    for (;;) {
      const end = await listWatch<ApiObject>(
        {
          client,
          path: claimsPath(namespace),
          read: (object) => object,
          replace: (objects) => {
            for (const id of this.#observed.keys()) if (isHere(id)) this.#observed.delete(id);
            for (const object of objects) this.#observed.set(idOf(object), object);
            onListed();
            this.#notice();
          },
          change: (changes) => {
            for (const { type, value } of changes) this.#observe(type, value);
          },
          onForbidden: () => this.#tell("the controller may not list HostnameClaims"),
          ...(observer === undefined ? {} : { observer }),
          ...(timing === undefined ? {} : { timing }),
        },
        signal,
      );
      if (end === "stopped") return;
      this.#tell("the CRD of HostnameClaims is not installed");
      if (!(await pause(timing?.absentMs ?? ABSENT_MS, signal))) return;
    }
  }

  #observe(type: "set" | "deleted", object: ApiObject): void {
    const id = idOf(object);
    if (type === "deleted") this.#observed.delete(id);
    else this.#observed.set(id, object);
    if (type === "deleted" || this.#agreed.get(id) !== object.metadata.resourceVersion) this.#notice();
  }

  /** Claims are held nowhere while this lasts. */
  #tell(problem: string): void {
    for (const [gateway] of [...this.#options.engine.claimHolds()]) this.#options.onFact(gateway, problem);
  }

  async #write(signal: AbortSignal): Promise<void> {
    const { engine, onFact, controllerName } = this.#options;
    const wanted = new Set<string>();
    for (const [gateway, { isEnforced }] of [...engine.claimHolds()]) {
      const book = this.#bookOf(gateway);
      const { namespace, name } = partsOf(gateway);
      for (const shard of book.takeDirty()) this.#agreed.delete(`${namespace}/${shardName(gateway, shard)}`);
      for (let shard = 0; shard < book.shards; shard++) {
        wanted.add(`${namespace}/${shardName(gateway, shard)}`);
        const spec = (): HostnameClaimsSpec => ({
          gateway: name,
          enforcement: isEnforced ? "Enforce" : "Audit",
          names: book.namesOf(shard),
        });
        await this.#settle(gateway, { shard, spec, enforcement: isEnforced ? "Enforce" : "Audit" }, signal);
      }
      onFact(gateway, undefined);
    }
    for (const gateway of this.#books.keys())
      if (![...engine.claimHolds()].some(([key]) => key === gateway)) this.#books.delete(gateway);
    for (const [id, object] of [...this.#observed])
      if (!wanted.has(id) && isWrittenBy(object, controllerName)) await this.#delete(id, object, signal);
  }

  #bookOf(gateway: Key): GatewayClaims {
    const known = this.#books.get(gateway);
    if (known !== undefined) return known;
    const { referenceOf, controllerName } = this.#options;
    const book = new GatewayClaims((hostname) => referenceOf(gateway, hostname === "*" ? "" : hostname));
    const { namespace, name } = partsOf(gateway);
    const shards = new Map<number, ShardNames>();
    for (const object of this.#observed.values()) {
      const spec = claimsSpecOf(object);
      const shard = shardOf(gateway, object.metadata.name);
      if (object.metadata.namespace !== namespace || spec?.gateway !== name || shard === undefined) continue;
      if (isWrittenBy(object, controllerName)) shards.set(shard, spec.names);
    }
    book.load(shards);
    const now = timestamp();
    const claims = this.#claims.get(gateway);
    for (const hostname of [...book.hostnames])
      if (!claims?.has(hostname)) book.update(hostname, undefined, now);
    for (const [hostname, claim] of claims ?? []) book.update(hostname, claim, now);
    this.#books.set(gateway, book);
    return book;
  }

  /** Makes one object say what it should, unless it does. */
  async #settle(
    gateway: Key,
    {
      shard,
      spec,
      enforcement,
    }: { readonly shard: number; readonly spec: () => HostnameClaimsSpec; readonly enforcement: string },
    signal: AbortSignal,
  ): Promise<void> {
    const { client, controllerName, uidOf } = this.#options;
    const { namespace } = partsOf(gateway);
    const name = shardName(gateway, shard);
    const id = `${namespace}/${name}`;
    const observed = this.#observed.get(id);
    const version = observed?.metadata.resourceVersion;
    const isKnown = observed !== undefined && this.#agreed.get(id) === version;
    if (isKnown && claimsSpecOf(observed)?.enforcement === enforcement) return;
    const body = claimsObject({ gateway, uid: uidOf(gateway), controllerName }, shard, spec());
    if (observed !== undefined && isDeepStrictEqual(observed["spec"], body.spec)) {
      this.#agreed.set(id, version);
      return;
    }
    const isNew = observed === undefined;
    const metadata = isNew ? body.metadata : { ...body.metadata, resourceVersion: version };
    const written = await client.request<ApiObject>({
      method: isNew ? "POST" : "PUT",
      path: isNew ? claimsPath(namespace) : claimPath(namespace, name),
      body: { ...body, metadata },
      signal,
    });
    this.#observed.set(id, written);
    this.#agreed.set(id, written.metadata.resourceVersion);
  }

  async #delete(id: string, { metadata }: ApiObject, signal: AbortSignal): Promise<void> {
    const path = claimPath(metadata.namespace ?? "", metadata.name);
    try {
      await this.#options.client.request({ method: "DELETE", path, signal });
    } catch (error) {
      if (!hasStatus(error, 404)) throw error;
    }
    this.#observed.delete(id);
    this.#agreed.delete(id);
  }
}

function idOf({ metadata }: ApiObject): string {
  return `${metadata.namespace ?? ""}/${metadata.name}`;
}

/** As Kubernetes writes times. */
function timestamp(): string {
  return `${new Date().toISOString().slice(0, 19)}Z`;
}
