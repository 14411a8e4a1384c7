/** Envoy listeners of one Gateway's ports, without the parts that Envoy rejects. */

import type { ItemId, PortItem } from "../../plan/plan.ts";
import type { Answer } from "./ads/ads-stream.ts";
import type { XdsResource } from "./ads/resource.ts";
import type { ResourceStore } from "./ads/resource-store.ts";
import type { ClusterUses } from "./compile/cluster-uses.ts";
import type { Model } from "./compile/model.ts";
import { compilePort, type PortOptions } from "./compile/port-listener.ts";
import { type NamedTrial, PortContainment, type PortListener } from "./containment/port-containment.ts";
import type { ProgrammingStatus } from "./programming-status.ts";
import { socketProblem } from "./socket-problem.ts";

export interface PortResourcesOptions {
  readonly model: Model;
  readonly store: ResourceStore;
  readonly uses: ClusterUses;
  readonly status: ProgrammingStatus;
  readonly port: PortOptions;
  /** Backends may have got their first reference, or lost their last. */
  readonly onUses: () => void;
}

export class PortResources {
  readonly #options: PortResourcesOptions;
  readonly #containment: PortContainment;

  constructor(options: PortResourcesOptions) {
    this.#options = options;
    const { store, status } = options;
    this.#containment = new PortContainment({
      compileProbe: (port, trial) => this.#compileProbe(port, trial),
      send: (probe) => store.set(probe),
      withdraw: (name) => store.delete("listener", name),
      onLearned: (port, listeners) => {
        this.compile(port);
        options.onUses();
        for (const id of listeners) status.listenerChanged(id);
      },
      onInexplicable: (port, { replica, version }) => {
        if (store.get("listener", port)?.version === version) status.portRefused(replica, port, "");
      },
    });
  }

  compile(id: ItemId): void {
    const { model, store, uses, status } = this.#options;
    const port = model.get("port", id);
    if (port === undefined) {
      uses.set({ port: id }, new Map(), new Set());
      this.#containment.forget(id);
      this.#dropOwn(id);
      store.delete("listener", id);
      return;
    }
    if (!(port.port > 0 && port.port < 65_536)) {
      store.delete("listener", id);
      status.portImpossible(id, `port ${port.port} is not a port`);
      return;
    }
    const refused = this.#containment.treatments(id, () => this.#listenersOf(id));
    const compiled = compilePort(model, port, { ...this.#options.port, refused });
    const clusters = new Map(
      [...compiled.clusters].map(([name, backend]) => [
        name,
        { backend, variant: "plain" as const, isRetried: false },
      ]),
    );
    uses.set({ port: id }, clusters, compiled.dependsOn);
    for (const each of compiled.own) store.set(each);
    if (compiled.own.length === 0) this.#dropOwn(id);
    if (store.set(compiled.resource)) status.portChanged(id);
  }

  /** Where a port is bound, if one can connect to it. */
  tcpPort(id: ItemId): ReturnType<PortOptions["bind"]> | undefined {
    const port = this.#options.model.get("port", id);
    return port?.transport === "tcp" ? this.#options.port.bind(port) : undefined;
  }

  isRefused(listener: ItemId): boolean {
    const item = this.#options.model.get("listener", listener);
    return item !== undefined && this.#containment.isRefused(item);
  }

  /** Envoy's NACK of a port. */
  refused(replica: string, { name, version }: Answer, problem: string): void {
    const { status } = this.#options;
    const isSocket = socketProblem(problem) !== undefined;
    if (!isSocket && this.#containment.refused(name, { replica, version }, this.#listenersOf(name))) return;
    status.portRefused(replica, name, problem);
  }

  /** The port that a name is a probe of. */
  portOfProbe(name: string): ItemId | undefined {
    return this.#containment.portOfProbe(name);
  }

  probed(port: ItemId, replica: string, answer: Answer): void {
    this.#containment.answered(port, replica, answer);
  }

  replicaLeft(replica: string): void {
    this.#containment.replicaLeft(replica);
  }

  *#listenersOf(port: ItemId): Generator<PortListener, void, undefined> {
    const { model } = this.#options;
    for (const listener of model.streamListeners(port)) {
      const hosts = [...model.hosts(listener.id)];
      const ids = hosts.flatMap(({ rules }) => rules.flatMap((rule) => rule.guards ?? []));
      const guards = ids.map((id) => model.get("guard", id)?.check);
      yield { listener, hosts, ...(guards.length === 0 ? {} : { guards }) };
    }
    // Of an HTTPS listener only its TLS settings are part of the port.
    for (const listener of model.httpListeners(port)) yield { listener, hosts: [] };
  }

  #compileProbe(id: ItemId, { name, listeners, refused }: NamedTrial): XdsResource | undefined {
    const { model } = this.#options;
    const port: PortItem | undefined = model.get("port", id);
    // Datagrams need a socket.
    if (port === undefined || port.protocol === "udp") return undefined;
    const probe = { name, listeners };
    const compiled = compilePort(model, port, { ...this.#options.port, refused, probe });
    return { ...compiled.resource, needs: [] };
  }

  #dropOwn(port: ItemId): void {
    this.#options.store.delete("cluster", `${port}#udp`);
    this.#options.store.delete("endpoints", `${port}#udp`);
  }
}
