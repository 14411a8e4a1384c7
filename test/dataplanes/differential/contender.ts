import type { Key } from "../../../src/api/key.ts";
import type { Resource } from "../../../src/api/resource.ts";
import { readAuthorities, readKeyPair } from "../../../src/certificates/read.ts";
import { Engine } from "../../../src/engine/engine.ts";
import { DEFAULT_CONTROLLER, DEFAULT_PORT_RANGE, type EngineSettings } from "../../../src/engine/settings.ts";
import { explainRequest } from "../../../src/matching/explain.ts";
import type { Explanation } from "../../../src/matching/explanation.ts";
import { RoutingTable } from "../../../src/matching/routing-table.ts";
import type { TestCertificate } from "../certificates.ts";
import { lastingPort } from "../lasting-port.ts";
import { type CreateDataPlane, PlaneUnderTest } from "../plane-under-test.ts";
import { Client, type Outcome } from "./client.ts";
import { PORTS } from "./names.ts";
import type { WireRequest } from "./requests.ts";

export type Resources = ReadonlyMap<Key, Resource>;

/**
 * One data plane for many configurations. It is fed with what one long-lived engine says has changed; what `explain` says of the same
 * configuration comes from an engine that has seen nothing else.
 */
export class Contender {
  readonly name: string;
  readonly #plane: PlaneUnderTest;
  readonly #settings: EngineSettings;
  readonly #engine: Engine;
  readonly #client: Client;
  #resources: Resources = new Map();
  #table: RoutingTable = new RoutingTable();

  private constructor(name: string, plane: PlaneUnderTest, client: Client) {
    this.name = name;
    this.#plane = plane;
    this.#client = client;
    this.#settings = {
      controllerName: DEFAULT_CONTROLLER,
      adoptUnknownClasses: true,
      assumeProgrammed: true,
      features: plane.plane.features,
      portRange: DEFAULT_PORT_RANGE,
      maxListenersPerGateway: 0,
      readKeyPair: readOnce,
      readAuthorities,
    };
    this.#engine = new Engine(this.#settings);
  }

  static async start(
    name: string,
    create: CreateDataPlane,
    certificate: TestCertificate,
  ): Promise<Contender> {
    const opened = new Map<number, number>();
    for (const port of PORTS) opened.set(port, await lastingPort());
    const portOf = (port: number): number => opened.get(port) ?? port;
    const plane = await PlaneUnderTest.start(create, [], {
      bind: { address: "127.0.0.1", portMap: portOf },
      onRequestEnd: () => {},
    });
    return new Contender(name, plane, new Client(portOf, certificate));
  }

  async become(resources: Resources): Promise<void> {
    this.#client.forget();
    const delta = this.#engine.apply(changes(this.#resources, resources));
    this.#resources = resources;
    await this.#plane.apply(delta.plan);
    const ports = [...this.#engine.plan()].filter(({ type }) => type === "port");
    await this.#plane.until(() => ports.every(({ id }) => this.#plane.report(id)?.state === "programmed"));

    const fresh = new Engine(this.#settings);
    this.#table = new RoutingTable();
    this.#table.apply(fresh.apply(changes(new Map(), resources)).plan);
  }

  explain(request: WireRequest): Explanation {
    return explainRequest(this.#table, request);
  }

  send(request: WireRequest): Promise<Outcome> {
    return this.#client.send(request);
  }

  async close(): Promise<void> {
    this.#client.close();
    await this.#plane.close();
  }
}

const pairs = new Map<string, ReturnType<typeof readKeyPair>>();

/** Thousands of engines read the same few pairs. */
const readOnce: typeof readKeyPair = (certificate, key) => {
  const text = `${certificate}${key}`;
  const known = pairs.get(text) ?? readKeyPair(certificate, key);
  pairs.set(text, known);
  return known;
};

/** Objects that stay the same are identical. */
function changes(
  before: Resources,
  after: Resources,
): readonly { readonly key: Key; readonly resource: Resource | undefined }[] {
  const gone = [...before.keys()].filter((key) => !after.has(key));
  const changed = [...after].filter(([key, resource]) => before.get(key) !== resource);
  return [
    ...gone.map((key) => ({ key, resource: undefined })),
    ...changed.map(([key, resource]) => ({ key, resource })),
  ];
}
