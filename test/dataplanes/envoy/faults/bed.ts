/**
 * Two Envoys that share their ports, controllers that they reach through one junction, and a tenant
 * under steady load.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  createEnvoyDataPlane,
  type EnvoyDataPlane,
} from "../../../../src/dataplanes/envoy/envoy-data-plane.ts";
import { EnvoyProcess } from "../../../../src/dataplanes/envoy/process/envoy-process.ts";
import type { PlanDelta, PlanItem } from "../../../../src/plan/plan.ts";
import { authority, issue, type TestAuthority } from "../../support/certificates.ts";
import { envoyBinary } from "../../support/envoy-binary.ts";
import { ask, Backends } from "../../support/http-peers.ts";
import { lastingPort } from "../../support/lasting-port.ts";
import {
  backend,
  certificate,
  forwardTo,
  gateway,
  host,
  listener,
  port,
  rule,
  secure,
} from "../../support/plan-builder.ts";
import { Junction } from "./junction.ts";
import { SteadyLoad } from "./steady-load.ts";

const http = port(80);
const https = port(443, "tls");
const BACKENDS = 3;
const TIME_LIMIT_MS = 60_000;

export class Bed {
  readonly ca: TestAuthority = authority();
  readonly #directory: string = mkdtempSync(join(tmpdir(), "mergeway-faults-"));
  readonly #backends: Backends = new Backends();
  readonly #ports: Map<number, number> = new Map();
  readonly #controllers: Set<EnvoyDataPlane> = new Set();
  readonly #plan: Map<string, PlanItem> = new Map();
  readonly envoys: EnvoyProcess[] = [];
  junction!: Junction;
  load!: SteadyLoad;
  #made = 0;

  static async up(envoys: number): Promise<Bed> {
    const bed = new Bed();
    for (const each of [80, 443]) bed.#ports.set(each, await lastingPort());
    const names = Array.from({ length: BACKENDS }, (_, at) => `b${at}`);
    const start: PlanItem[] = [http, https];
    for (const name of names) start.push(backend(name, [await bed.#backends.listen(ordinary(name))]));
    start.push(...bed.tenant("steady", "b0"));
    const first = await bed.controller(start);
    bed.junction = await Junction.open(join(bed.#directory, "junction"), first.path);
    for (let at = 0; at < envoys; at++) bed.envoys.push(bed.#envoy(`envoy-${at}`));
    await bed.settled(first.plane);
    bed.load = new SteadyLoad({
      httpPort: bed.at(80),
      httpsPort: bed.at(443),
      host: "steady.example",
      ca: bed.ca.cert,
    });
    return bed;
  }

  at(portOfPlan: number): number {
    return this.#ports.get(portOfPlan) as number;
  }

  /** The plan as it should be served in the end. */
  plan(): readonly PlanItem[] {
    return [...this.#plan.values()];
  }

  /** Another controller with this plan, or with all of it. */
  async controller(
    items: readonly PlanItem[] = this.plan(),
  ): Promise<{ readonly plane: EnvoyDataPlane; readonly path: string }> {
    const path = join(this.#directory, `controller-${this.#made++}`);
    const plane = createEnvoyDataPlane({
      bind: { address: "127.0.0.1", portMap: (each) => this.at(each) },
      lingerMs: 200,
      serve: { listen: { path }, gatewayOf: ({ cluster }) => cluster },
    });
    this.#controllers.add(plane);
    this.#note({ upserts: items, removes: [] });
    plane.apply({ upserts: items, removes: [] });
    await plane.ready;
    return { plane, path };
  }

  async dismiss(plane: EnvoyDataPlane): Promise<void> {
    this.#controllers.delete(plane);
    await plane.close({ graceMs: 0 });
  }

  /** To all controllers that there are. */
  apply(delta: PlanDelta): void {
    this.#note(delta);
    for (const plane of this.#controllers) plane.apply(delta);
  }

  tenant(name: string, to: string): readonly PlanItem[] {
    const pair = certificate(`c-${name}`, issue(this.ca, [`${name}.example`]));
    const clear = listener(`http-${name}`, http, `${name}.example`);
    const over = secure(`https-${name}`, https, `${name}.example`, [pair]);
    return [pair, clear, over, ...this.routes(name, to)];
  }

  routes(name: string, to: string): readonly PlanItem[] {
    const clear = listener(`http-${name}`, http, `${name}.example`);
    const over = secure(`https-${name}`, https, `${name}.example`, []);
    return [clear, over].map((each) => host(each, each.hostname, [rule({ action: forwardTo(to) })]));
  }

  removal(name: string): readonly string[] {
    return [
      `c-${name}`,
      ...["http", "https"].flatMap((kind) => [`${kind}-${name}`, `host-${kind}-${name}-${name}.example`]),
    ];
  }

  backendAt(index: number): string {
    return `b${index % BACKENDS}`;
  }

  /** Returns when every Envoy is connected to this controller and has everything. */
  async settled(plane: EnvoyDataPlane): Promise<void> {
    const until = performance.now() + TIME_LIMIT_MS;
    while (!(plane.replicas.length === this.envoys.length && plane.settled)) {
      if (performance.now() > until) throw new Error("the Envoys do not come to rest");
      await sleep(10);
    }
  }

  /** What each tenant gets over both ports: the name of its backend, or nothing. */
  async served(names: readonly string[]): Promise<readonly string[]> {
    const found: string[] = [];
    for (const name of names) {
      const of = `${name}.example`;
      const clear = await ask(this.at(80), { host: of });
      const over = await ask(this.at(443), {
        host: of,
        tls: { ca: this.ca.cert, servername: of },
      }).then(
        ({ status, seen }) => (status === 200 ? seen.backend : String(status)),
        () => "404",
      );
      const plain = clear.status === 200 ? clear.seen.backend : String(clear.status);
      found.push(plain === over ? plain : `${plain} and ${over}`);
    }
    return found;
  }

  async down(): Promise<void> {
    await this.load?.stop();
    await Promise.all(this.envoys.map((envoy) => envoy.close(0)));
    this.junction?.close();
    for (const plane of this.#controllers) await plane.close({ graceMs: 0 });
    await this.#backends.release();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  #note({ upserts, removes }: PlanDelta): void {
    for (const id of removes) this.#plan.delete(id);
    for (const item of upserts) this.#plan.set(item.id, item);
  }

  #envoy(name: string): EnvoyProcess {
    return new EnvoyProcess({
      binary: envoyBinary(),
      directory: this.#directory,
      name,
      gateway,
      serverPath: join(this.#directory, "junction"),
      concurrency: 1,
      maxConnections: 1_000,
      drainSeconds: 1,
      extraArguments: ["--reject-unknown-dynamic-fields"],
      onLine: () => {},
      onLog: () => {},
      onExit: () => {},
    });
  }
}

/**
 * Hangs up on connections that have been idle for five seconds, as Node does by itself: Envoy must
 * not send a request into that.
 */
function ordinary(name: string): Server {
  return createServer((_request, response) => response.end(JSON.stringify({ backend: name })));
}
