/**
 * When an Envoy counts as serving what it was given: what a frozen one never does, and what neither
 * a flood of names nor a flow of changes may hold up.
 */
import { afterEach, describe, expect, test } from "vitest";
import { AdsStream, defaultStreamLimits } from "../../../../src/dataplanes/envoy/ads/ads-stream.ts";
import { resource, urlOf, type XdsKind } from "../../../../src/dataplanes/envoy/ads/resource.ts";
import { ResourceStore } from "../../../../src/dataplanes/envoy/ads/resource-store.ts";
import type { EnvoyDataPlane } from "../../../../src/dataplanes/envoy/envoy-data-plane.ts";
import * as proto from "../../../../src/dataplanes/envoy/wire/proto.ts";
import { text as field, type Message, message } from "../../../../src/dataplanes/envoy/wire/protobuf.ts";
import { createEnvoy } from "../../support/envoy-plane.ts";
import { ask, Backends } from "../../support/http-peers.ts";
import { backend, forwardTo, host, listener, port, rule } from "../../support/plan-builder.ts";
import { PlaneUnderTest } from "../../support/plane-under-test.ts";

const CONFIGURED = "configured.example";

/** A stream whose client answers when the test says so. */
class Client {
  readonly store: ResourceStore = new ResourceStore({
    find: (name) => resource("secret", name, content(`secret ${this.#secrets}`)),
    isConfigured: (name) => name === CONFIGURED,
    ownerOf: () => "wild",
  });
  readonly stream: AdsStream;
  #secrets = 0;
  #sent = 0;
  #answered = 0;

  constructor() {
    this.store.set(resource("listener", "port", content("0")));
    this.stream = new AdsStream({
      store: this.store,
      limits: { ...defaultStreamLimits, onDemandPerSecond: 1, onDemandSecrets: 1 },
      write: () => {
        this.#sent++;
        return true;
      },
      onAnswer: () => {},
    });
  }

  async subscribe(kind: XdsKind, names: readonly string[] = []): Promise<void> {
    this.#say(kind, { subscribe: names });
    await this.pumped();
  }

  change(text: string): void {
    this.store.set(resource("listener", "port", content(text)));
  }

  secretChanges(): void {
    this.#secrets++;
    this.store.secretChanged(CONFIGURED);
  }

  /** Every one, whatever its name. */
  secretsChange(): void {
    this.#secrets++;
    this.store.secretsChanged("");
  }

  /** Answers for the oldest so many of what was sent, by default for all. */
  async answer(kind: XdsKind, count: number = this.#sent - this.#answered): Promise<void> {
    for (let index = 0; index < count; index++) this.#say(kind, { nonce: String(++this.#answered) });
    await this.pumped();
  }

  pumped(): Promise<void> {
    return new Promise((resolve) => setTimeout(resolve, 5));
  }

  #say(kind: XdsKind, say: { readonly subscribe?: readonly string[]; readonly nonce?: string }): void {
    this.stream.receive({
      node: undefined,
      typeUrl: urlOf(kind),
      subscribe: say.subscribe ?? [],
      unsubscribe: [],
      initialVersions: new Map(),
      nonce: say.nonce ?? "",
      error: undefined,
    });
  }
}

/** Of whatever type: nobody reads it. */
function content(text: string): Message<never> {
  return message(field(proto.Resource.name, text)) as Uint8Array as Message<never>;
}

describe("a mark on the stream of an Envoy", () => {
  test("is passed when Envoy has answered for everything before it", async () => {
    const client = new Client();
    const early = client.stream.mark();
    expect(early()).toBe(false);
    await client.subscribe("listener");
    expect(early()).toBe(false);
    await client.answer("listener");
    expect(early()).toBe(true);
    client.change("1");
    const mark = client.stream.mark();
    await client.pumped();
    expect(mark()).toBe(false);
    await client.answer("listener");
    expect(mark()).toBe(true);
  });

  test("is passed although a newer change is always under way", async () => {
    const client = new Client();
    await client.subscribe("listener");
    await client.answer("listener");
    client.change("1");
    const mark = client.stream.mark();
    await client.pumped();
    expect(mark()).toBe(false);
    client.change("2");
    await client.pumped();
    await client.answer("listener", 1);
    expect(mark()).toBe(true);
    expect(client.stream.settled).toBe(false);
  });

  test("does not wait for on-demand names", async () => {
    const client = new Client();
    await client.subscribe("listener");
    await client.answer("listener");
    await client.subscribe(
      "secret",
      Array.from({ length: 100 }, (_, index) => `random-${index}.example`),
    );
    await client.answer("secret");
    const mark = client.stream.mark();
    expect(mark()).toBe(true);
  });

  test("a stream is settled while new on-demand names wait, but not while one that Envoy has changes", async () => {
    const client = new Client();
    await client.subscribe("listener");
    await client.answer("listener");
    await client.subscribe("secret", ["first.example", "second.example"]);
    expect(client.stream.settled, "one is under way, the other waits").toBe(true);
    await client.answer("secret");
    client.secretsChange();
    expect(client.stream.settled).toBe(false);
    await client.pumped();
    expect(client.stream.settled).toBe(false);
    await client.answer("secret");
    expect(client.stream.settled).toBe(true);
  });

  test("waits for configured names", async () => {
    const client = new Client();
    await client.subscribe("listener");
    await client.subscribe("secret", [CONFIGURED]);
    await client.answer("listener");
    client.secretChanges();
    const mark = client.stream.mark();
    await client.pumped();
    expect(mark()).toBe(false);
    await client.answer("secret");
    expect(mark()).toBe(true);
  });
});

describe("an Envoy that is frozen", () => {
  const cleanups: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });

  test("does not serve a change before it resumes", async () => {
    const backends = new Backends();
    cleanups.push(() => backends.release());
    const http = port(80);
    const own = listener("t", http, "t.example");
    let envoy: EnvoyDataPlane | undefined;
    const plane = await PlaneUnderTest.start(
      (options) => {
        envoy = createEnvoy(options);
        return envoy;
      },
      [http, own, backend("b", [await backends.echo("b")])],
    );
    cleanups.push(() => plane.close());
    const pid = envoy?.process(own.gateway)?.pid;
    if (envoy === undefined || pid === undefined) throw new Error("there is no Envoy");
    expect(await envoy.served()).toBe(true);
    process.kill(pid, "SIGSTOP");
    cleanups.push(async () => process.kill(pid, "SIGCONT"));
    plane.plane.apply({
      upserts: [host(own, "t.example", [rule({ action: forwardTo("b") })])],
      removes: [],
    });
    let isServed = false;
    const served = envoy.served().then((value) => {
      isServed = value;
    });
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(isServed).toBe(false);
    process.kill(pid, "SIGCONT");
    await served;
    expect(isServed).toBe(true);
    expect((await ask(plane.at(80), { host: "t.example" })).status).toBe(200);
  });
});
