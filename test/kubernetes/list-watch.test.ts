import { afterEach, describe, expect, test } from "vitest";
import type { ApiObject } from "../../src/kubernetes/api-object.ts";
import { type ListWatchTiming, listWatch } from "../../src/kubernetes/list-watch.ts";
import { type Answer, eventually, type Seen, ServerDouble } from "./server-double.ts";

const FAST: Partial<ListWatchTiming> = { firstBackoffMs: 1, mostBackoffMs: 5, pageSize: 2, idleMs: 60_000 };
const PATH = "/apis/example.com/v1/things";

function thing(name: string, version: number): ApiObject {
  return { metadata: { name, resourceVersion: String(version) } };
}

function event(type: string, name: string, version: number): unknown {
  return { type, object: thing(name, version) };
}

const GONE = { type: "ERROR", object: { code: 410, reason: "Expired", message: "too old" } };

interface Follower {
  readonly state: () => ReadonlyMap<string, string>;
  readonly ended: Promise<string>;
  readonly stop: () => void;
}

let double: ServerDouble | undefined;
const followers: Follower[] = [];

function follow(timing: Partial<ListWatchTiming> = {}, metadataOnly = false): Follower {
  const abort = new AbortController();
  const state = new Map<string, string>();
  const ended = listWatch(
    {
      client: (double as ServerDouble).client(),
      path: PATH,
      metadataOnly,
      read: ({ metadata }) => metadata,
      replace: (all) => {
        state.clear();
        for (const { name, resourceVersion } of all) state.set(name, resourceVersion ?? "");
      },
      change: (changes) => {
        for (const { type, value } of changes) {
          if (type === "deleted") state.delete(value.name);
          else state.set(value.name, value.resourceVersion ?? "");
        }
      },
      timing: { ...FAST, ...timing },
    },
    abort.signal,
  );
  const follower = { state: () => state, ended, stop: () => abort.abort() };
  followers.push(follower);
  return follower;
}

/** Lists and watches in the order they come; the last handler of each serves all that follow. */
async function serve(script: {
  readonly lists: readonly ((seen: Seen, answer: Answer) => void)[];
  readonly watches: readonly ((seen: Seen, answer: Answer) => void)[];
}): Promise<ServerDouble> {
  let lists = 0;
  let watches = 0;
  double = await ServerDouble.start((seen, answer) => {
    const isWatch = seen.query.get("watch") === "true";
    const at = isWatch ? watches++ : lists++;
    const handlers = isWatch ? script.watches : script.lists;
    handlers[Math.min(at, handlers.length - 1)]?.(seen, answer);
  });
  return double;
}

const listOf =
  (version: number, ...objects: readonly ApiObject[]) =>
  (_seen: Seen, answer: Answer): void =>
    answer.json({ metadata: { resourceVersion: String(version) }, items: objects });

const open = (_seen: Seen, answer: Answer): void => answer.events();

function watchVersions(): readonly (string | null)[] {
  return (double?.requests ?? [])
    .filter(({ query }) => query.get("watch") === "true")
    .map(({ query }) => query.get("resourceVersion"));
}

function lists(): number {
  return (double?.requests ?? []).filter(({ query }) => query.get("watch") !== "true").length;
}

afterEach(async () => {
  for (const follower of followers.splice(0)) {
    follower.stop();
    await follower.ended;
  }
  await double?.stop();
  double = undefined;
});

describe("list and watch", () => {
  test("reads all pages before it says anything", async () => {
    await serve({
      lists: [
        (seen, answer) => {
          expect(seen.query.get("limit")).toBe("2");
          answer.json({
            metadata: { resourceVersion: "9", continue: "more" },
            items: [thing("a", 1), thing("b", 2)],
          });
        },
        (seen, answer) => {
          expect(seen.query.get("continue")).toBe("more");
          answer.json({ metadata: { resourceVersion: "9" }, items: [thing("c", 3)] });
        },
      ],
      watches: [open],
    });
    const { state } = follow();
    await eventually(() => expect([...state().keys()]).toEqual(["a", "b", "c"]));
    await eventually(() => expect(watchVersions()).toEqual(["9"]));
  });

  test("a page token that has expired leads to a list without pages", async () => {
    await serve({
      lists: [
        (_seen, answer) =>
          answer.json({ metadata: { continue: "stale" }, items: [thing("a", 1), thing("b", 2)] }),
        (_seen, answer) => answer.refuse(410, "Expired"),
        (seen, answer) => {
          expect(seen.query.has("limit")).toBe(false);
          listOf(7, thing("b", 2), thing("c", 3))(seen, answer);
        },
      ],
      watches: [open],
    });
    const { state } = follow();
    await eventually(() => expect([...state().keys()]).toEqual(["b", "c"]));
  });

  test("a version that the server has forgotten in mid-watch: lists again and drops what has gone", async () => {
    await serve({
      lists: [listOf(5, thing("a", 1), thing("b", 2)), listOf(50, thing("b", 2), thing("d", 44))],
      watches: [(_seen, answer) => answer.events(event("ADDED", "c", 6), GONE), open],
    });
    const { state } = follow();
    await eventually(() =>
      expect([...state()]).toEqual([
        ["b", "2"],
        ["d", "44"],
      ]),
    );
    expect(watchVersions()[0]).toBe("5");
    await eventually(() => expect(watchVersions()).toEqual(["5", "50"]));
    expect(lists()).toBe(2);
  });

  test("a version that the server refuses at once", async () => {
    await serve({
      lists: [listOf(5, thing("a", 1)), listOf(60, thing("z", 59))],
      watches: [(_seen, answer) => answer.refuse(410, "Expired"), open],
    });
    const { state } = follow();
    await eventually(() => expect([...state().keys()]).toEqual(["z"]));
  });

  test("bookmarks move the place where an interrupted watch goes on", async () => {
    await serve({
      lists: [listOf(5)],
      watches: [
        (_seen, answer) => {
          answer.events({ type: "BOOKMARK", object: { metadata: { resourceVersion: "40" } } });
          answer.end();
        },
        open,
      ],
    });
    follow();
    await eventually(() => expect(watchVersions()).toEqual(["5", "40"]));
    expect(lists()).toBe(1);
  });

  test("a connection that breaks within an event loses nothing and repeats nothing", async () => {
    await serve({
      lists: [listOf(5)],
      watches: [
        (_seen, answer) => {
          answer.events(event("ADDED", "a", 6));
          answer.raw(JSON.stringify(event("ADDED", "b", 7)).slice(0, 30));
          setTimeout(() => answer.breakOff(), 20);
        },
        (_seen, answer) => answer.events(event("ADDED", "b", 7)),
      ],
    });
    const { state } = follow();
    await eventually(() => expect([...state().keys()]).toEqual(["a", "b"]));
    expect(watchVersions()).toEqual(["5", "6"]);
    expect(lists()).toBe(1);
  });

  test("a stream that has gone silent is given up and continued", async () => {
    await serve({
      lists: [listOf(5)],
      watches: [
        (_seen, answer) => answer.events(event("ADDED", "a", 6)),
        (_seen, answer) => answer.events(event("ADDED", "b", 8)),
      ],
    });
    const { state } = follow({ idleMs: 100 });
    await eventually(() => expect([...state().keys()]).toEqual(["a", "b"]));
    expect(watchVersions().slice(0, 2)).toEqual(["5", "6"]);
    expect(lists()).toBe(1);
  });

  test("an event split over many chunks is one event", async () => {
    await serve({
      lists: [listOf(5)],
      watches: [
        (_seen, answer) => {
          answer.events();
          const bytes = Buffer.from(`${JSON.stringify(event("ADDED", "ä".repeat(50), 6))}
`);
          for (const [index] of bytes.entries()) {
            setTimeout(() => answer.raw(bytes.subarray(index, index + 1)), index / 4);
          }
        },
      ],
    });
    const { state } = follow();
    await eventually(() => expect([...state().keys()]).toEqual(["ä".repeat(50)]));
  });

  test("a watch that keeps failing for other reasons ends in a new list", async () => {
    const broken = { type: "ERROR", object: { code: 500, reason: "InternalError", message: "no" } };
    await serve({
      lists: [listOf(5), listOf(70, thing("n", 69))],
      watches: [
        ...Array.from({ length: 4 }, () => (_seen: Seen, answer: Answer) => answer.events(broken)),
        open,
      ],
    });
    const { state } = follow();
    await eventually(() => expect([...state().keys()]).toEqual(["n"]));
  });

  test("failures of the server itself end no list", async () => {
    await serve({
      lists: [
        (_seen, answer) => answer.refuse(500, "InternalError"),
        (_seen, answer) => answer.refuse(429, "TooManyRequests", { "retry-after": "0" }),
        (_seen, answer) => answer.breakOff(),
        (_seen, answer) => answer.json({ metadata: { resourceVersion: "3" }, items: [thing("a", 1)] }),
      ],
      watches: [open],
    });
    const { state } = follow();
    await eventually(() => expect([...state().keys()]).toEqual(["a"]));
  });

  test("a collection that does not exist is told, not retried", async () => {
    await serve({ lists: [(_seen, answer) => answer.refuse(404, "NotFound")], watches: [open] });
    await expect(follow().ended).resolves.toBe("absent");
    expect(lists()).toBe(1);
  });

  test("a collection that ceases to exist is told", async () => {
    await serve({
      lists: [listOf(5, thing("a", 1))],
      watches: [
        (_seen, answer) => {
          answer.events(event("DELETED", "a", 6));
          answer.end();
        },
        (_seen, answer) => answer.refuse(404, "NotFound"),
      ],
    });
    await expect(follow().ended).resolves.toBe("absent");
  });

  test("metadata alone is asked for by its own media type", async () => {
    await serve({ lists: [listOf(5)], watches: [open] });
    follow({}, true);
    await eventually(() => expect(watchVersions()).toHaveLength(1));
    expect(double?.requests.map(({ headers }) => headers.accept)).toEqual([
      "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
      "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    ]);
  });
});
