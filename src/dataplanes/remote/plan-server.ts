/**
 * The controller's end of the stream, seen by the rest as one data plane. Items are encoded once, whoever asks; a pod that reads slowly gets the newest state
 * of each item when it reads again, never a queue of old ones.
 */
import {
  createSecureServer,
  type Http2SecureServer,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from "node:http2";
import type { ItemId, PlanDelta, PlanItem } from "../../plan/plan.ts";
import type { CloseOptions, DataPlane, ItemReport } from "../dataplane.ts";
import { readLines } from "./lines.ts";
import { type ControllerMessage, digestOf, encodeItem, PLAN_PATH, type PodMessage } from "./protocol.ts";
import { ReplicaReports } from "./replica-reports.ts";

export interface PlanServerOptions {
  readonly features: ReadonlySet<string>;
  readonly certificate: string;
  readonly key: string;
  readonly address: string;
  readonly port: number;
  /** Whether the bearer of a token may have the items of a Gateway (`namespace/name`). */
  readonly authorize: (token: string, gateway: string) => Promise<boolean>;
  readonly onRefused?: (gateway: string, peer: string) => void;
  readonly onReplicas?: (gateway: string, connected: number) => void;
}

interface EncodedItem {
  readonly text: string;
  readonly digest: string;
}

interface Replica {
  readonly gateway: string;
  readonly pod: string;
  readonly stream: ServerHttp2Stream;
  /** What changed while the pod was not reading. */
  readonly pending: Set<ItemId>;
  blocked: boolean;
  /** Whether this controller is the one that the pod takes its items from. */
  serving: boolean;
}

const MAX_LINE = 64 * 1024 * 1024;
const ITEMS_PER_MESSAGE = 256;
const PING_MS = 10_000;

export class PlanServer implements DataPlane {
  readonly features: ReadonlySet<string>;
  readonly #options: PlanServerOptions;
  readonly #server: Http2SecureServer;
  readonly #sessions: Set<ServerHttp2Session> = new Set();
  readonly #items: Map<string, Map<ItemId, EncodedItem>> = new Map();
  readonly #gatewayOf: Map<ItemId, string> = new Map();
  readonly #replicas: Map<string, Set<Replica>> = new Map();
  readonly #reports: ReplicaReports = new ReplicaReports();

  constructor(options: PlanServerOptions) {
    this.features = options.features;
    this.#options = options;
    this.#server = createSecureServer({ cert: options.certificate, key: options.key, minVersion: "TLSv1.3" });
    this.#server.on("session", (session) => this.#keepAlive(session));
    this.#server.on("stream", (stream, headers) => {
      stream.on("error", () => stream.destroy());
      if (headers[":method"] !== "POST" || headers[":path"] !== PLAN_PATH) return refuse(stream, 404);
      const token = /^Bearer (.+)$/.exec(headers["authorization"] ?? "")?.[1];
      if (token === undefined) return refuse(stream, 401);
      return void this.#serve(stream, token).catch(() => stream.destroy());
    });
  }

  listen(): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(this.#options.port, this.#options.address, () => {
        this.#server.removeListener("error", reject);
        const bound = this.#server.address();
        resolve(typeof bound === "object" && bound !== null ? bound.port : this.#options.port);
      });
    });
  }

  apply({ upserts, removes }: PlanDelta): void {
    const changed = new Map<string, ItemId[]>();
    const note = (gateway: string, id: ItemId): void => {
      const ids = changed.get(gateway);
      if (ids === undefined) changed.set(gateway, [id]);
      else ids.push(id);
    };
    for (const item of upserts) {
      this.#store(item);
      note(item.gateway, item.id);
    }
    for (const id of removes) {
      const gateway = this.#gatewayOf.get(id);
      if (gateway === undefined) continue;
      this.#gatewayOf.delete(id);
      this.#items.get(gateway)?.delete(id);
      note(gateway, id);
    }
    this.#reports.drop(removes);
    for (const [gateway, ids] of changed) {
      for (const replica of this.#replicas.get(gateway) ?? []) this.#send(replica, ids);
    }
  }

  onReport(handler: (reports: readonly ItemReport[]) => void): void {
    this.#reports.onChange(handler);
  }

  async close(_options?: CloseOptions): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const session of this.#sessions) session.destroy();
    await closed;
  }

  #store(item: PlanItem): void {
    const text = encodeItem(item);
    let items = this.#items.get(item.gateway);
    if (items === undefined) {
      items = new Map();
      this.#items.set(item.gateway, items);
    }
    items.set(item.id, { text, digest: digestOf(text) });
    this.#gatewayOf.set(item.id, item.gateway);
  }

  #keepAlive(session: ServerHttp2Session): void {
    this.#sessions.add(session);
    let answered = true;
    const timer = setInterval(() => {
      if (!answered) return session.destroy();
      answered = false;
      return void session.ping(() => {
        answered = true;
      });
    }, PING_MS);
    timer.unref();
    session.on("error", () => session.destroy());
    session.once("close", () => {
      clearInterval(timer);
      this.#sessions.delete(session);
    });
  }

  async #serve(stream: ServerHttp2Stream, token: string): Promise<void> {
    let replica: Replica | undefined;
    try {
      for await (const line of readLines(stream, MAX_LINE)) {
        const message = JSON.parse(line) as PodMessage;
        if (message.type === "hello" && replica === undefined) {
          if (!(await this.#options.authorize(token, message.gateway))) {
            this.#options.onRefused?.(message.gateway, stream.session?.socket.remoteAddress ?? "");
            return refuse(stream, 403);
          }
          replica = this.#admit(stream, message);
        } else if (message.type === "serve" && replica !== undefined) {
          this.#begin(replica, message.have);
        } else if (message.type === "report" && replica !== undefined) {
          this.#reports.take(replica.pod, own(message.reports, replica.gateway, this.#gatewayOf));
        } else return refuse(stream, 400);
      }
    } finally {
      if (replica !== undefined) this.#dismiss(replica);
    }
  }

  #admit(stream: ServerHttp2Stream, hello: Extract<PodMessage, { type: "hello" }>): Replica {
    stream.respond({ ":status": 200, "content-type": "application/x-ndjson" });
    const replica: Replica = {
      gateway: hello.gateway,
      pod: hello.pod,
      stream,
      pending: new Set(),
      blocked: false,
      serving: false,
    };
    const replicas = this.#replicas.get(hello.gateway) ?? new Set();
    this.#replicas.set(hello.gateway, replicas.add(replica));
    this.#options.onReplicas?.(hello.gateway, replicas.size);
    stream.on("drain", () => {
      replica.blocked = false;
      this.#send(replica, []);
    });
    return replica;
  }

  #begin(replica: Replica, have: Readonly<Record<ItemId, string>>): void {
    replica.serving = true;
    const items = this.#items.get(replica.gateway) ?? new Map<ItemId, EncodedItem>();
    const ids = [
      ...[...items].filter(([id, { digest }]) => have[id] !== digest).map(([id]) => id),
      ...Object.keys(have).filter((id) => !items.has(id)),
    ];
    this.#send(replica, ids, true);
  }

  #dismiss(replica: Replica): void {
    const replicas = this.#replicas.get(replica.gateway);
    replicas?.delete(replica);
    if (replicas?.size === 0) this.#replicas.delete(replica.gateway);
    this.#reports.forget(replica.pod);
    this.#options.onReplicas?.(replica.gateway, replicas?.size ?? 0);
  }

  /** The whole difference is one message to the pod, so that it is applied in one step, unless it is very large. */
  #send(replica: Replica, ids: readonly ItemId[], synced = false): void {
    if (!replica.serving) return;
    for (const id of ids) replica.pending.add(id);
    if (replica.blocked && !synced) return;
    const batch = [...replica.pending];
    replica.pending.clear();
    if (batch.length === 0 && !synced) return;
    const items = this.#items.get(replica.gateway);
    for (let start = 0; start === 0 || start < batch.length; start += ITEMS_PER_MESSAGE) {
      const part = batch.slice(start, start + ITEMS_PER_MESSAGE);
      const last = start + ITEMS_PER_MESSAGE >= batch.length;
      const message: ControllerMessage = {
        type: "delta",
        upserts: part.flatMap((id) => items?.get(id)?.text ?? []),
        removes: part.filter((id) => !items?.has(id)),
        ...(synced && last ? { synced } : {}),
      };
      if (!replica.stream.write(`${JSON.stringify(message)}\n`)) replica.blocked = true;
    }
  }
}

/** A pod speaks for the items of its own Gateway only. */
function own(
  reports: readonly ItemReport[],
  gateway: string,
  gatewayOf: ReadonlyMap<ItemId, string>,
): readonly ItemReport[] {
  return reports.filter(({ id }) => gatewayOf.get(id) === gateway);
}

function refuse(stream: ServerHttp2Stream, status: number): void {
  if (!stream.headersSent && !stream.destroyed) stream.respond({ ":status": status }, { endStream: true });
  else stream.destroy();
}
