/**
 * Events on objects that people describe. They are a courtesy: never waited for, never repeated
 * within a while, limited for each object and in all, and dropped rather than queued when there are
 * too many. Everything that matters is in the status as well.
 */
import { randomBytes } from "node:crypto";
import { ApiError } from "../../kubernetes/api-error.ts";
import { collectionPath } from "../../kubernetes/api-object.ts";
import type { KubernetesClient } from "../../kubernetes/client.ts";
import type { KubernetesObserver } from "../../kubernetes/observer.ts";
import { WriteTokens } from "../scheduling/bucket.ts";

export interface EventObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly uid?: string | undefined;
}

export interface EventContent {
  readonly type: "Normal" | "Warning";
  readonly reason: string;
  /** What was being done, in one word. */
  readonly action: string;
  readonly note: string;
  readonly related?: EventObject;
}

export interface EventRecorderOptions {
  readonly client: KubernetesClient;
  /** Such as `mergeway.dev/controller`. */
  readonly controllerName: string;
  /** The pod's name. */
  readonly instance: string;
  readonly observer?: KubernetesObserver;
  readonly limits?: Partial<EventLimits>;
}

export interface EventLimits {
  /** The same Event of the same object is not repeated within this time. */
  readonly repeatMs: number;
  readonly burstPerObject: number;
  readonly refillPerObjectMs: number;
  readonly burst: number;
  readonly refillMs: number;
  readonly atOnce: number;
}

const LIMITS: EventLimits = {
  repeatMs: 600_000,
  burstPerObject: 10,
  refillPerObjectMs: 60_000,
  burst: 200,
  refillMs: 100,
  atOnce: 4,
};

/** Objects remembered at most; the oldest are forgotten first. */
const REMEMBERED = 10_000;
const MOST_WAITING = 500;
const NOTE_LENGTH = 1024;
const EVENTS = "events.k8s.io/v1";

export class EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #limits: EventLimits;
  readonly #told = new Recent<number>(REMEMBERED);
  readonly #objects = new Recent<WriteTokens>(REMEMBERED);
  readonly #all: WriteTokens;
  readonly #waiting: (readonly [EventObject, EventContent])[] = [];
  #sending = 0;
  #dropped = 0;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
    this.#limits = { ...LIMITS, ...options.limits };
    this.#all = new WriteTokens(this.#limits.burst, this.#limits.refillMs, performance.now());
  }

  /** Events that were not sent because there were too many. */
  get dropped(): number {
    return this.#dropped;
  }

  record(regarding: EventObject, content: EventContent): void {
    const object = `${regarding.kind}/${regarding.namespace}/${regarding.name}/${regarding.uid ?? ""}`;
    const sentence = `${object} ${content.reason} ${content.note}`;
    const now = performance.now();
    const before = this.#told.get(sentence);
    if (before !== undefined && now - before < this.#limits.repeatMs) return;
    const { burstPerObject, refillPerObjectMs } = this.#limits;
    const bucket = this.#objects.get(object) ?? new WriteTokens(burstPerObject, refillPerObjectMs, now);
    this.#objects.set(object, bucket);
    if (this.#waiting.length >= MOST_WAITING || !bucket.take(now) || !this.#all.take(now)) {
      this.#dropped++;
      return;
    }
    this.#told.set(sentence, now);
    this.#waiting.push([regarding, content]);
    this.#pump();
  }

  #pump(): void {
    while (this.#sending < this.#limits.atOnce) {
      const next = this.#waiting.shift();
      if (next === undefined) return;
      this.#sending++;
      void this.#send(...next).finally(() => {
        this.#sending--;
        this.#pump();
      });
    }
  }

  async #send(regarding: EventObject, content: EventContent): Promise<void> {
    const { client, controllerName, instance, observer } = this.#options;
    // Events of cluster-scoped objects live in the default namespace.
    const namespace = regarding.namespace || "default";
    const event = {
      apiVersion: EVENTS,
      kind: "Event",
      metadata: { namespace, name: eventName(regarding.name) },
      eventTime: new Date().toISOString().replace("Z", "000Z"),
      reportingController: controllerName,
      reportingInstance: instance.slice(0, 128),
      type: content.type,
      reason: content.reason,
      action: content.action,
      note: shorten(content.note),
      regarding: referenceTo(regarding),
      ...(content.related === undefined ? {} : { related: referenceTo(content.related) }),
    };
    const path = collectionPath({ apiVersion: EVENTS, plural: "events", namespace });
    try {
      await client.request({ method: "POST", path, body: event, timeoutMs: 5_000 });
    } catch (error) {
      const { message } = ApiError.fromFailure("event", error);
      observer?.log?.("debug", `an Event was not taken: ${message}`);
    }
  }
}

function referenceTo({ apiVersion, kind, namespace, name, uid }: EventObject): object {
  return {
    apiVersion,
    kind,
    name,
    ...(namespace === "" ? {} : { namespace }),
    ...(uid === undefined ? {} : { uid }),
  };
}

/** As other controllers name theirs: the object, and something that no other Event of it has. */
function eventName(object: string): string {
  return `${object.slice(0, 200).replace(/[^a-z0-9]+$/, "")}.${randomBytes(8).toString("hex")}`;
}

/** The API counts bytes. */
function shorten(note: string): string {
  const bytes = Buffer.from(note, "utf8");
  if (bytes.length <= NOTE_LENGTH) return note;
  const cut = bytes.subarray(0, NOTE_LENGTH - 3).toString("utf8");
  return `${cut.replace(/\uFFFD+$/, "")}…`;
}

/** A map that forgets what was set longest ago. */
class Recent<V> {
  readonly #most: number;
  readonly #values = new Map<string, V>();

  constructor(most: number) {
    this.#most = most;
  }

  get(key: string): V | undefined {
    return this.#values.get(key);
  }

  set(key: string, value: V): void {
    this.#values.delete(key);
    this.#values.set(key, value);
    if (this.#values.size <= this.#most) return;
    for (const oldest of this.#values.keys()) {
      this.#values.delete(oldest);
      return;
    }
  }
}
