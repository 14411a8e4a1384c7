import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Key } from "../../../src/api/key.ts";
import { Batch } from "../../../src/sources/kubernetes/batch.ts";

const SET: Key = "ListenerSet/team/web";
const OTHER: Key = "ListenerSet/other/web";
const SECRET: Key = "Secret/team/web";
const OTHER_SECRET: Key = "Secret/other/web";

describe("a batch of changes", () => {
  let missing: Set<Key>;
  let sent: (readonly Key[])[];
  let batch: Batch;

  beforeEach(() => {
    vi.useFakeTimers();
    missing = new Set();
    sent = [];
    const sink = (changes: readonly { readonly key: Key }[]): void => {
      sent.push(changes.map(({ key }) => key));
    };
    batch = new Batch({ sink, gatherMs: 5, waitMs: 2_000, missing: () => missing });
    batch.open();
    sent = [];
  });

  afterEach(() => {
    batch.close();
    vi.useRealTimers();
  });

  function read(key: Key): void {
    missing.delete(key);
    batch.arrived(key);
  }

  test("goes together after its gathering time", () => {
    batch.add(SET, undefined);
    batch.add(OTHER, undefined);
    expect(sent).toEqual([]);
    vi.advanceTimersByTime(5);
    expect(sent).toEqual([[SET, OTHER]]);
  });

  test("is passed on as soon as the object it waits for is read, also when the timer was early", () => {
    // A timer of Node may end up to a millisecond early by `performance.now()`.
    const now = vi.spyOn(performance, "now");
    now.mockReturnValue(0.4);
    batch.add(SET, undefined);
    missing.add(SECRET);
    now.mockReturnValue(4.9);
    vi.advanceTimersByTime(5);
    expect(sent).toEqual([]);
    read(SECRET);
    expect(sent).toEqual([[SET]]);
    now.mockRestore();
  });

  test("has the objects in it that it waited for", () => {
    batch.add(SET, undefined);
    missing.add(SECRET);
    vi.advanceTimersByTime(5);
    batch.add(OTHER, undefined);
    batch.add(SECRET, undefined);
    read(SECRET);
    expect(sent).toEqual([[SET, SECRET]]);
    vi.advanceTimersByTime(5);
    expect(sent).toEqual([[SET, SECRET], [OTHER]]);
  });

  test("waits for the objects that were missing when it was closed, and for no later ones", () => {
    batch.add(SET, undefined);
    missing.add(SECRET);
    vi.advanceTimersByTime(5);
    batch.add(OTHER, undefined);
    missing.add(OTHER_SECRET);
    read(SECRET);
    expect(sent).toEqual([[SET]]);
    vi.advanceTimersByTime(5);
    expect(sent).toEqual([[SET]]);
    read(OTHER_SECRET);
    expect(sent).toEqual([[SET], [OTHER]]);
  });

  test("never overtakes an earlier one", () => {
    batch.add(SET, undefined);
    missing.add(SECRET);
    vi.advanceTimersByTime(5);
    batch.add(OTHER, undefined);
    vi.advanceTimersByTime(100);
    expect(sent).toEqual([]);
    read(SECRET);
    vi.advanceTimersByTime(5);
    expect(sent).toEqual([[SET], [OTHER]]);
  });

  test("is delayed once, not again and again, by an object that cannot be read", () => {
    batch.add(SET, undefined);
    missing.add(SECRET);
    vi.advanceTimersByTime(5 + 1_999);
    expect(sent).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(sent).toEqual([[SET]]);
    batch.add(OTHER, undefined);
    vi.advanceTimersByTime(5);
    expect(sent).toEqual([[SET], [OTHER]]);
    // Once it has been read it is an object like any other: the next time it is waited for.
    read(SECRET);
    batch.add(SET, undefined);
    missing.add(SECRET);
    vi.advanceTimersByTime(5);
    expect(sent).toEqual([[SET], [OTHER]]);
  });
});
