/**
 * A thousand changes of tenants while others have something running: none of them notices.
 * CHURN_SECONDS=60 spreads the changes over a minute; otherwise they come as fast as they are
 * served.
 */

import { afterEach, expect, test } from "vitest";
import { readAuthorities, readKeyPair } from "../../src/certificates/read.ts";
import { createEmbeddedDataPlane } from "../../src/dataplanes/embedded/embedded-data-plane.ts";
import { Engine } from "../../src/engine/engine.ts";
import { DEFAULT_CONTROLLER, DEFAULT_PORT_RANGE } from "../../src/engine/foundation/settings.ts";
import { download, grpcCall, http2Answer, type LongStream, webSocket } from "./churn/long-streams.ts";
import { arrival, type Change, departure, gateway, hostOf, type Tenant } from "./churn/tenants.ts";
import { authority, issue } from "./support/certificates.ts";
import { ask, Backends } from "./support/http-peers.ts";
import { lastingPort } from "./support/lasting-port.ts";
import { type CreateDataPlane, PlaneUnderTest } from "./support/plane-under-test.ts";

const CHANGES = 1_000;
const SECONDS = Number(process.env["CHURN_SECONDS"] ?? 0);
/** Only tenants that come and go listen here: the port opens and closes with them. */
const PORTS = [80, 443, 8081];

const CONTENDERS: readonly (readonly [name: string, create: CreateDataPlane])[] = [
  ["embedded, in the process", (options) => createEmbeddedDataPlane({ ...options, workers: 0 })],
  ["embedded, in two workers", (options) => createEmbeddedDataPlane({ ...options, workers: 2 })],
];

const backends: Backends = new Backends();
const releases: (() => unknown)[] = [];

afterEach(async () => {
  await Promise.all(releases.splice(0).map((release) => release()));
  await backends.release();
});

test.each(CONTENDERS)(
  "nobody notices that others come, change and go: %s",
  async (_name, create) => {
    const ca = authority();
    const edge = await Edge.start(create);
    releases.push(() => edge.close());
    const residents = await Promise.all(
      [download, webSocket, http2Answer, grpcCall].map((make) => make(backends, ca)),
    );
    await edge.apply([...gateway(), ...residents.flatMap(({ tenant }) => arrival(tenant))]);
    const streams = await Promise.all(residents.map(({ open }) => open((port) => edge.at(port))));

    const backend = await backends.echo("guest");
    const began = Date.now();
    const before = streams.map((stream) => stream.received());
    let changes = 0;
    for (let round = 0; changes < CHANGES; round++) {
      const guest = (edition: string): Tenant => {
        const name = `guest-${round % 7}`;
        return { name, backend, ports: PORTS, edition, certificate: issue(ca, [`${name}.test`]) };
      };
      const first = guest(`first ${round}`);
      const second = guest(`second ${round}`);
      const steps = [
        { change: arrival(first), edition: first.edition },
        { change: arrival(second), edition: second.edition },
        { change: departure(second), edition: undefined },
      ];
      for (const { change, edition } of steps) {
        if (changes === CHANGES) break;
        await pause(began + (changes * SECONDS * 1_000) / CHANGES - Date.now());
        await edge.apply(change);
        changes++;
        await edge.serves(first, edition);
      }
    }

    for (const [at, stream] of streams.entries()) await progressed(stream, before[at] ?? 0);
    const noticed = Object.fromEntries(
      await Promise.all(streams.map(async (stream) => [stream.tenant.name, await stream.finish()] as const)),
    );
    expect(noticed).toEqual({ download: [], socket: [], stream: [], call: [] });
    expect(changes).toBe(CHANGES);
  },
  180_000 + SECONDS * 2_000,
);

/** A Gateway with an engine before its data plane, as in the product. */
class Edge {
  readonly #engine: Engine;
  readonly #plane: PlaneUnderTest;
  readonly #opened: ReadonlyMap<number, number>;

  private constructor(plane: PlaneUnderTest, opened: ReadonlyMap<number, number>) {
    this.#plane = plane;
    this.#opened = opened;
    this.#engine = new Engine({
      controllerName: DEFAULT_CONTROLLER,
      adoptUnknownClasses: true,
      assumeProgrammed: true,
      features: plane.plane.features,
      portRange: DEFAULT_PORT_RANGE,
      maxListenersPerGateway: 0,
      readKeyPair,
      readAuthorities,
    });
  }

  static async start(create: CreateDataPlane): Promise<Edge> {
    const opened = new Map<number, number>();
    for (const port of PORTS) opened.set(port, await lastingPort());
    const portMap = (port: number): number => opened.get(port) ?? port;
    const plane = await PlaneUnderTest.start(create, [], {
      bind: { address: "127.0.0.1", portMap },
      onRequestEnd: () => {},
    });
    return new Edge(plane, opened);
  }

  at(port: number): number {
    return this.#opened.get(port) ?? port;
  }

  apply(changes: readonly Change[]): Promise<void> {
    return this.#plane.apply(this.#engine.apply(changes).plan);
  }

  /**
   * The change is not only taken but served; workers may take a moment to let go of what is
   * removed.
   */
  async serves(tenant: Tenant, edition: string | undefined): Promise<void> {
    const seen = async (): Promise<unknown> => {
      const { status, headers } = await ask(this.at(80), { host: hostOf(tenant) });
      return status === 404 ? undefined : headers["x-edition"];
    };
    while ((await seen()) !== edition) await pause(1);
  }

  close(): Promise<void> {
    return this.#plane.close();
  }
}

/** It is alive: more has come since, or comes now. */
async function progressed(stream: LongStream, before: number): Promise<void> {
  while (stream.received() <= before) await pause(5);
}

async function pause(milliseconds: number): Promise<void> {
  if (milliseconds > 0) await new Promise((resolve) => setTimeout(resolve, milliseconds));
}
