import { createSocket, type RemoteInfo, type Socket } from "node:dgram";
import { once } from "node:events";
import { afterEach, describe, expect, it } from "vitest";
import { UdpPort, type UdpPortOptions } from "../../../../src/dataplanes/embedded/streams/udp-port.ts";
import { RoutingTable } from "../../../../src/matching/routing-table.ts";
import type { GuardCheck } from "../../../../src/plan/guard.ts";
import type { PlanItem } from "../../../../src/plan/plan.ts";
import { guard } from "../../support/plan-builder.ts";
import { seeded } from "../../support/sockets.ts";
import {
  streamBackend,
  streamHost,
  streamListener,
  streamPort,
  streamRule,
} from "../../support/stream-table.ts";

let opened: UdpPort[] = [];
let open: Socket[] = [];

afterEach(async () => {
  await Promise.all(opened.map((port) => port.close()));
  for (const socket of open) socket.close();
  opened = [];
  open = [];
});

async function bind(
  onMessage?: (socket: Socket, datagram: Buffer, from: RemoteInfo) => void,
): Promise<Socket> {
  const socket = createSocket("udp4");
  open.push(socket);
  socket.on("error", () => {});
  if (onMessage !== undefined) socket.on("message", (datagram, from) => onMessage(socket, datagram, from));
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return socket;
}

/** Answers every datagram with its own name before it. */
async function echo(name = ""): Promise<number> {
  const socket = await bind((self, datagram, from) =>
    self.send(`${name}${datagram}`, from.port, from.address),
  );
  return socket.address().port;
}

async function serve(
  items: readonly PlanItem[],
  options: Partial<UdpPortOptions> = {},
): Promise<{ readonly udp: UdpPort; readonly port: number; readonly table: RoutingTable }> {
  const table = new RoutingTable();
  table.apply({ upserts: [streamPort("p", "udp"), streamListener("l", "p", "UDP"), ...items], removes: [] });
  const udp = new UdpPort({
    port: "p",
    table,
    idleTimeoutMs: 30_000,
    maxSessions: 2_000,
    random: seeded(3),
    ...options,
  });
  opened.push(udp);
  return { udp, table, port: await udp.listen({ address: "127.0.0.1", port: 0 }) };
}

const toOne = (...ports: readonly number[]): readonly PlanItem[] => [
  streamHost("l", [streamRule(["b", 1])]),
  streamBackend("b", ports),
];

/** Datagrams may be lost: asks again until there is an answer. */
async function ask(socket: Socket, port: number, question: string): Promise<string> {
  const answer = once(socket, "message");
  const repeat = setInterval(() => socket.send(question, port, "127.0.0.1"), 50);
  socket.send(question, port, "127.0.0.1");
  const [datagram, from] = (await answer.finally(() => clearInterval(repeat))) as [Buffer, RemoteInfo];
  expect(from.port).toBe(port);
  return datagram.toString();
}

/** Whether anything comes back; asked of what must stay silent. */
async function silence(socket: Socket, port: number): Promise<boolean> {
  let heard = false;
  socket.once("message", () => {
    heard = true;
  });
  socket.send("anybody?", port, "127.0.0.1");
  await new Promise((resolve) => setTimeout(resolve, 150));
  return !heard;
}

async function until(condition: () => boolean): Promise<void> {
  for (let i = 0; i < 1_000 && !condition(); i++) await new Promise((resolve) => setTimeout(resolve, 10));
  expect(condition()).toBe(true);
}

describe("UdpPort", () => {
  it("serves a thousand clients, each with its own answers", async () => {
    const { udp, port } = await serve(toOne(await echo("re: ")));
    const clients = await Promise.all(Array.from({ length: 1_000 }, () => bind()));
    for (let at = 0; at < clients.length; at += 50) {
      const batch = clients.slice(at, at + 50);
      const answers = await Promise.all(batch.map((client, i) => ask(client, port, `client ${at + i}`)));
      expect(answers).toEqual(batch.map((_, i) => `re: client ${at + i}`));
    }
    expect(udp.sessions).toBe(1_000);
    // The same clients again: nobody gets a second session.
    expect(await ask(clients[0] as Socket, port, "again")).toBe("re: again");
    expect(udp.sessions).toBe(1_000);
    await udp.close();
    expect(udp.sessions).toBe(0);
  });

  it("keeps a client at the backend it got, and shares clients by weight", async () => {
    const { port } = await serve([
      streamHost("l", [streamRule(["a", 3], ["b", 1], ["off", 0])]),
      streamBackend("a", [await echo("a")]),
      streamBackend("b", [await echo("b")]),
      streamBackend("off", [await echo("off")]),
    ]);
    const seen: Record<string, number> = {};
    for (let i = 0; i < 200; i++) {
      const client = await bind();
      const name = await ask(client, port, "");
      expect(await ask(client, port, "")).toBe(name);
      seen[name] = (seen[name] ?? 0) + 1;
    }
    expect(Object.keys(seen).sort()).toEqual(["a", "b"]);
    expect(seen["a"]).toBeGreaterThan(110);
    expect(seen["b"]).toBeGreaterThan(20);
  });

  it.each<[string, readonly PlanItem[]]>([
    ["no rule", []],
    ["an invalid reference", [streamHost("l", [streamRule([undefined, 1])])]],
    ["a sum of weights of 0", [streamHost("l", [streamRule(["b", 0])]), streamBackend("b", [9])]],
    ["no endpoint", toOne()],
  ])("is silent with %s", async (_title, items) => {
    const { udp, port } = await serve(items);
    expect(await silence(await bind(), port)).toBe(true);
    expect(udp.counters).toMatchObject({ received: 1, dropped: 1, replied: 0 });
    expect(udp.sessions).toBe(0);
  });

  it("never has more sessions than it may, and a flood does not push out conversations", async () => {
    const { udp, port } = await serve(toOne(await echo()), { maxSessions: 20 });
    const talking = await bind();
    for (let i = 0; i < 3; i++) await ask(talking, port, `${i}`);
    // Each source speaks once and never reacts, as a forged one would.
    for (let i = 0; i < 300; i++) {
      const forged = await bind();
      forged.send("x", port, "127.0.0.1");
      await once(forged, "message");
      expect(udp.sessions).toBeLessThanOrEqual(20);
    }
    await until(() => udp.counters.evicted >= 200);
    const { received } = udp.counters;
    expect(await ask(talking, port, "still here")).toBe("still here");
    expect(udp.counters.received).toBeGreaterThan(received);
    // The conversation was not opened anew: one more session would have pushed out another.
    expect(udp.counters.evicted).toBe(281);
  });

  it("has no bounds where it was given none", async () => {
    const { udp, port } = await serve(toOne(await echo()), { maxSessions: 0, idleTimeoutMs: 0 });
    for (let i = 0; i < 5; i++) expect(await ask(await bind(), port, `${i}`)).toBe(`${i}`);
    expect(udp.sessions).toBe(5);
    expect(udp.counters.evicted).toBe(0);
  });

  it("evicts the idlest among equals", async () => {
    const sources: number[] = [];
    const backend = await bind((self, datagram, from) => {
      sources.push(from.port);
      self.send(datagram, from.port, from.address);
    });
    const { udp, port } = await serve(toOne(backend.address().port), { maxSessions: 2 });
    const [one, two, three] = [await bind(), await bind(), await bind()];
    for (const client of [one, two]) for (let i = 0; i < 2; i++) await ask(client, port, "x");
    await ask(one, port, "x");
    await ask(three, port, "x");
    expect(udp.counters.evicted).toBe(1);
    await ask(one, port, "x");
    expect(sources.at(-1)).toBe(sources[0]);
    expect(udp.counters.evicted).toBe(1);
    await ask(two, port, "x");
    expect(udp.counters.evicted).toBe(2);
  });

  it("ends sessions that are idle", async () => {
    let now = 0;
    const { udp, port } = await serve(toOne(await echo()), { idleTimeoutMs: 40, now: () => now });
    const [gone, active] = [await bind(), await bind()];
    await ask(gone, port, "x");
    now = 30;
    await ask(active, port, "x");
    expect(udp.sessions).toBe(2);
    now = 41;
    await until(() => udp.sessions === 1);
    now = 100;
    await until(() => udp.sessions === 0);
    expect(await ask(active, port, "new")).toBe("new");
  });

  it("ends a session whose endpoint refuses, and tries another next time", async () => {
    const dead = createSocket("udp4").bind(0, "127.0.0.1");
    await once(dead, "listening");
    const { port: nobody } = dead.address();
    await new Promise<void>((resolve) => dead.close(resolve));
    const { port } = await serve(toOne(nobody, nobody, nobody, await echo()));
    for (let i = 0; i < 5; i++) expect(await ask(await bind(), port, `${i}`)).toBe(`${i}`);
  });

  it("ends sessions of endpoints, backends and rules that go, and no others", async () => {
    const [first, second] = [await echo("first "), await echo("second ")];
    const { udp, port, table } = await serve([
      streamHost("l", [streamRule(["a", 1], ["b", 1])]),
      streamBackend("a", [first]),
      streamBackend("b", [second]),
    ]);
    const clients = await Promise.all(Array.from({ length: 20 }, () => bind()));
    const answers = await Promise.all(clients.map((client) => ask(client, port, "x")));
    const atFirst = answers.filter((answer) => answer === "first x").length;
    expect(atFirst).toBeGreaterThan(0);
    expect(atFirst).toBeLessThan(20);

    const apply = (upserts: readonly PlanItem[], removes: readonly string[] = []): void => {
      table.apply({ upserts, removes });
      udp.reconcile();
    };
    apply([streamBackend("other", [first])]);
    expect(udp.sessions).toBe(20);
    apply([streamBackend("a", [first, await echo("third ")])]);
    expect(udp.sessions).toBe(20);
    apply([streamBackend("a", [await echo("fourth ")])]);
    expect(udp.sessions).toBe(20 - atFirst);
    apply([streamHost("l", [streamRule(["a", 1], ["b", 0])])]);
    expect(udp.sessions).toBe(20 - atFirst);
    apply([streamHost("l", [streamRule(["a", 1])])]);
    expect(udp.sessions).toBe(0);
    const client = clients[0] as Socket;
    client.removeAllListeners("message");
    expect(await ask(client, port, "y")).toBe("fourth y");
    apply([], ["l"]);
    expect(udp.sessions).toBe(0);
    expect(await silence(client, port)).toBe(true);
  });

  it("carries empty and large datagrams", async () => {
    const { port } = await serve(toOne(await echo()));
    const client = await bind();
    expect(await ask(client, port, "")).toBe("");
    const large = "l".repeat(60_000);
    expect(await ask(client, port, large)).toBe(large);
  });

  it("keeps what arrives while its socket opens, within a bound", async () => {
    const heard: string[] = [];
    const backend = await bind((_self, datagram) => heard.push(datagram.toString()));
    const { udp, port } = await serve(toOne(backend.address().port));
    const client = await bind();
    for (let i = 0; i < 10; i++) client.send(`${i}`, port, "127.0.0.1");
    await until(() => udp.counters.received === 10 && heard.length === 10);
    expect(heard).toEqual(Array.from({ length: 10 }, (_, i) => `${i}`));
  });

  it("tells when a port cannot be bound, and leaves nothing behind", async () => {
    const { udp, port, table } = await serve([]);
    const second = new UdpPort({ port: "p", table, idleTimeoutMs: 1_000, maxSessions: 1 });
    await expect(second.listen({ address: "127.0.0.1", port })).rejects.toMatchObject({ code: "EADDRINUSE" });
    await second.close();
    await udp.close();
    const again = new UdpPort({ port: "p", table, idleTimeoutMs: 1_000, maxSessions: 1 });
    opened.push(again);
    expect(await again.listen({ address: "127.0.0.1", port })).toBe(port);
  });

  it("shares a port between workers", async () => {
    const { table, udp } = await serve(toOne(await echo()));
    await udp.close();
    const options = { port: "p", table, idleTimeoutMs: 1_000, maxSessions: 10 };
    const [one, two] = [new UdpPort(options), new UdpPort(options)];
    opened.push(one, two);
    const port = await one.listen({ address: "127.0.0.1", port: 0, reusePort: true });
    await two.listen({ address: "127.0.0.1", port, reusePort: true });
    for (let i = 0; i < 10; i++) expect(await ask(await bind(), port, `${i}`)).toBe(`${i}`);
    expect(one.sessions + two.sessions).toBe(10);
  });

  it("drops the datagrams of clients that a guard does not let pass, also in the middle of a session", async () => {
    const { table, udp, port } = await serve([
      streamHost("l", [{ ...streamRule(["b", 1]), guards: ["g"] }]),
      streamBackend("b", [await echo()]),
    ]);
    const use = (check: GuardCheck | undefined): void => {
      const upserts = check === undefined ? [] : [guard("g", check)];
      table.apply({ upserts, removes: check === undefined ? ["g"] : [] });
      udp.reconcile();
    };
    const client = await bind();
    expect(await silence(client, port)).toBe(true);
    use({ type: "addresses", deny: ["192.0.2.0/24"] });
    expect(await ask(client, port, "let in")).toBe("let in");
    expect(udp.sessions).toBe(1);
    use({ type: "addresses", deny: ["127.0.0.0/8"] });
    expect(udp.sessions).toBe(0);
    expect(await silence(client, port)).toBe(true);
    use({ type: "addresses", allow: ["127.0.0.1/32"] });
    expect(await ask(client, port, "let in again")).toBe("let in again");
    use(undefined);
    expect(udp.sessions).toBe(0);
  });
});
