// Gives LoadBalancer Services their addresses; kube-proxy does the rest. Runs inside the cluster
// for as long as it lives.

import { setTimeout as delay } from "node:timers/promises";
import { failureOf } from "../host/failure.ts";
import type { Cluster } from "../host/places.ts";
import { assign, type Claim, type Grant } from "./address-pool.ts";
import { Api, ApiFailure } from "./api.ts";
import { dynamicAddresses, staticAddresses } from "./network.ts";

/** Asks for several addresses, comma-separated; the field `loadBalancerIP` has room for one. */
const addressesAnnotation = "mergeway.test/load-balancer-addresses";

interface Service {
  readonly metadata: {
    readonly namespace: string;
    readonly name: string;
    readonly uid: string;
    readonly creationTimestamp: string;
    readonly resourceVersion: string;
    readonly deletionTimestamp?: string;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec: {
    readonly type?: string;
    readonly loadBalancerIP?: string;
    readonly loadBalancerClass?: string;
    readonly externalIPs?: readonly string[];
  };
  readonly status?: { readonly loadBalancer?: { readonly ingress?: readonly { readonly ip?: string }[] } };
}

interface ServiceList {
  readonly metadata: { readonly resourceVersion: string };
  readonly items: readonly Service[];
}

interface WatchEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  readonly object: Service;
}

const ranges = { dynamic: dynamicAddresses, onRequest: staticAddresses } as const;

export async function runLoadBalancer(cluster: Cluster): Promise<never> {
  const api = new Api(cluster);
  const balancer = new LoadBalancer(api);
  for (;;) {
    try {
      await follow(api, balancer);
    } catch (error) {
      // The server may be away because a test stopped it.
      console.error(`lost the API server: ${failureOf(error)}`);
    }
    await delay(500);
  }
}

/** One list and one watch, until the watch ends. */
async function follow(api: Api, balancer: LoadBalancer): Promise<void> {
  const list = await api.get<ServiceList>("/api/v1/services");
  const services = new Map(list.items.map((service) => [keyOf(service), service]));
  await balancer.settle(services);
  const from = `resourceVersion=${list.metadata.resourceVersion}`;
  for await (const event of api.watch<WatchEvent>(`/api/v1/services?watch=1&${from}&timeoutSeconds=300`)) {
    if (event.type === "ERROR") {
      return;
    }
    if (event.type === "DELETED") {
      services.delete(keyOf(event.object));
    } else if (event.type !== "BOOKMARK") {
      services.set(keyOf(event.object), event.object);
    }
    await balancer.settle(services);
  }
}

class LoadBalancer {
  readonly #api: Api;
  #cursor = 0;
  /** Refusals already told, so that each makes one Event. */
  readonly #told = new Set<string>();

  constructor(api: Api) {
    this.#api = api;
  }

  async settle(services: Map<string, Service>): Promise<void> {
    const ours = [...services.values()].filter(isOurs);
    const { grants, cursor } = assign(ours.map(claimOf), ranges, this.#cursor);
    this.#cursor = cursor;
    for (const [key, service] of services) {
      // Others' classes are others' statuses; a Service that is no longer a LoadBalancer is cleared
      // by the API server.
      const grant = grants.get(key);
      if (grant !== undefined) {
        await this.#write(service, grant, services);
      }
    }
  }

  async #write(service: Service, grant: Grant, services: Map<string, Service>): Promise<void> {
    const { namespace, name } = service.metadata;
    if (heldBy(service).join() !== grant.addresses.join()) {
      const ingress = grant.addresses.map((ip) => ({ ip, ipMode: "VIP" }));
      const path = `/api/v1/namespaces/${namespace}/services/${name}/status`;
      const status = { loadBalancer: { ingress } };
      try {
        await this.#api.patchMerge(path, { status });
        // The next settling must know, even before the watch has brought the change back.
        services.set(keyOf(service), { ...service, status });
        console.log(`${namespace}/${name}: ${grant.addresses.join(", ") || "no address"}`);
      } catch (error) {
        if (!(error instanceof ApiFailure && error.status === 404)) {
          throw error;
        }
      }
    }
    for (const { address, reason } of grant.refused) {
      await this.#refuse(service, `address ${address} is refused: ${reason}`);
    }
  }

  async #refuse(service: Service, message: string): Promise<void> {
    const { namespace, name, uid } = service.metadata;
    const note = `${uid} ${message}`;
    if (this.#told.has(note)) {
      return;
    }
    this.#told.add(note);
    console.log(`${namespace}/${name}: ${message}`);
    const now = new Date().toISOString();
    const event = {
      metadata: { generateName: `${name}.`.slice(0, 200), namespace },
      involvedObject: { apiVersion: "v1", kind: "Service", namespace, name, uid },
      type: "Warning",
      reason: "AddressRefused",
      message,
      source: { component: "mergeway-test-load-balancer" },
      firstTimestamp: now,
      lastTimestamp: now,
      count: 1,
    };
    // A namespace that is being deleted takes no new objects; the Event is a courtesy.
    await this.#api.create(`/api/v1/namespaces/${namespace}/events`, event).catch(() => undefined);
  }
}

function isOurs(service: Service): boolean {
  const { type, loadBalancerClass } = service.spec;
  return (
    type === "LoadBalancer" &&
    loadBalancerClass === undefined &&
    service.metadata.deletionTimestamp === undefined
  );
}

function claimOf(service: Service): Claim {
  const { annotations, creationTimestamp } = service.metadata;
  const { loadBalancerIP, externalIPs } = service.spec;
  const annotated = (annotations?.[addressesAnnotation] ?? "").split(",").map((part) => part.trim());
  const requested = [loadBalancerIP ?? "", ...annotated, ...(externalIPs ?? [])].filter(
    (address) => address !== "",
  );
  return { key: keyOf(service), created: creationTimestamp, requested, held: heldBy(service) };
}

function heldBy(service: Service): readonly string[] {
  return (service.status?.loadBalancer?.ingress ?? []).flatMap((entry) => entry.ip ?? []);
}

function keyOf(service: Service): string {
  return `${service.metadata.namespace}/${service.metadata.name}`;
}
