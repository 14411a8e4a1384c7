import type { Key } from "../../../src/api/key.ts";
import type { Resource } from "../../../src/api/resource.ts";
import { readAuthorities, readKeyPair } from "../../../src/certificates/read.ts";
import { Engine } from "../../../src/engine/engine.ts";
import {
  DEFAULT_CONTROLLER,
  DEFAULT_PORT_RANGE,
  type EngineSettings,
} from "../../../src/engine/foundation/settings.ts";
import { explainRequest } from "../../../src/matching/explain/explain.ts";
import type { Explanation } from "../../../src/matching/explain/explanation.ts";
import { RoutingTable } from "../../../src/matching/routing-table.ts";
import type { PortProtocol } from "../../../src/plan/plan.ts";
import type { TestCertificate } from "../support/certificates.ts";
import { lastingPort } from "../support/lasting-port.ts";
import { type CreateDataPlane, PlaneUnderTest } from "../support/plane-under-test.ts";
import { Client, type Outcome } from "./client.ts";
import { PORTS } from "./names.ts";
import type { WireRequest } from "./requests.ts";

export type Resources = ReadonlyMap<Key, Resource>;

/** A data plane that takes part. */
export interface Entry {
  readonly name: string;
  readonly create: CreateDataPlane;
  /** How many configurations it is given. */
  readonly runs: number;
  /** Whether it hangs up on clients that ask nothing when their port goes; else the client does. */
  readonly endsIdle: boolean;
  /** Whether gRPC clients are redirected as others are; else they are told in gRPC's words. */
  readonly redirectsGrpc: boolean;
  /**
   * Whether a port refuses all server names that only another port serves; else requests may get
   * 404 or 421.
   */
  readonly namesByPort: boolean;
  /** Whether `%2f` becomes `%2F`. */
  readonly raisesEscapes: boolean;
  /**
   * Whether a redirect from a wildcard names the host in lower case, and no port that only the
   * client named; else it is as the client wrote it.
   */
  readonly writesHosts: boolean;
}

/**
 * One data plane for many configurations. It is fed with what one long-lived engine says has
 * changed; what `explain` says of the same configuration comes from an engine that has seen nothing
 * else.
 */
export class Contender {
  readonly entry: Entry;
  readonly #plane: PlaneUnderTest;
  readonly #settings: EngineSettings;
  readonly #engine: Engine;
  readonly #client: Client;
  #resources: Resources = new Map();
  #table: RoutingTable = new RoutingTable();

  private constructor(entry: Entry, plane: PlaneUnderTest, client: Client) {
    this.entry = entry;
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

  static async start(entry: Entry, certificate: TestCertificate): Promise<Contender> {
    const opened = new Map<number, number>();
    for (const port of PORTS) opened.set(port, await lastingPort());
    const portOf = (port: number): number => opened.get(port) ?? port;
    const plane = await PlaneUnderTest.start(entry.create, [], {
      bind: { address: "127.0.0.1", portMap: portOf },
      onRequestEnd: () => {},
    });
    return new Contender(entry, plane, new Client(portOf, certificate));
  }

  async become(resources: Resources): Promise<void> {
    this.#client.forget();
    const before = this.#ports();
    const delta = this.#engine.apply(changes(this.#resources, resources));
    this.#resources = resources;
    const after = this.#ports();
    if (!this.entry.endsIdle) {
      for (const [port, protocol] of before) if (after.get(port) !== protocol) this.#client.leave(port);
    }
    await this.#plane.apply(delta.plan);
    const ports = [...this.#engine.plan()].filter(({ type }) => type === "port");
    await this.#plane.until(() => ports.every(({ id }) => this.#plane.report(id)?.state === "programmed"));

    const fresh = new Engine(this.#settings);
    this.#table = new RoutingTable();
    this.#table.apply(fresh.apply(changes(new Map(), resources)).plan);
  }

  #ports(): ReadonlyMap<number, PortProtocol> {
    const ports = [...this.#engine.plan()].filter((item) => item.type === "port");
    return new Map(ports.map(({ port, protocol }) => [port, protocol]));
  }

  explain(request: WireRequest): Explanation {
    return explainRequest(this.#table, request);
  }

  /** Whether the port refuses the server name, and another port has a listener for it. */
  isForAnotherPort(request: WireRequest): boolean {
    if (!this.#refusesName(request)) return false;
    const others = [...this.#ports()].filter(
      ([port, protocol]) => protocol === "tls" && port !== request.port,
    );
    return others.some(([port]) => !this.#refusesName({ ...request, port }));
  }

  #refusesName(request: WireRequest): boolean {
    return this.explain(request).steps.some(({ at, text }) => at === "sni" && text.startsWith("refused"));
  }

  async send(request: WireRequest): Promise<Outcome> {
    const outcome = await this.#client.send(request);
    if (this.entry.raisesEscapes || !("location" in outcome)) return outcome;
    return { ...outcome, location: outcome.location.replace(/%[0-9a-f]{2}/gi, (each) => each.toUpperCase()) };
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
