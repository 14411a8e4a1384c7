/**
 * A small cluster: an API server with one Gateway, controllers, data plane pods, and what else a
 * cluster does by itself: addresses of Services and EndpointSlices of pods.
 */
import type { ApiObject } from "../../src/kubernetes/api-object.ts";
import type { ApiWeather } from "./api-client.ts";
import { ApiServer } from "./api-server.ts";
import type { StreamWeather } from "./plan-stream.ts";
import { SimulatedController } from "./simulated-controller.ts";
import { CONTROLLER_NAME } from "./simulated-options.ts";
import { type Disk, SimulatedPod } from "./simulated-pod.ts";
import type { World } from "./world.ts";

export const GATEWAYS = "gateway.networking.k8s.io/v1/gateways";
export const SETS = "gateway.networking.k8s.io/v1/listenersets";
export const ROUTES = "gateway.networking.k8s.io/v1/httproutes";
export const CLASSES = "gateway.networking.k8s.io/v1/gatewayclasses";
export const TRAFFIC_POLICIES = "mergeway.dev/v1alpha1/trafficpolicies";
export const NAMESPACES = "v1/namespaces";
export const SERVICES = "v1/services";
export const SECRETS = "v1/secrets";
export const SLICES = "discovery.k8s.io/v1/endpointslices";
export const LEASES = "coordination.k8s.io/v1/leases";

export const GATEWAY = { namespace: "infra", name: "shared" } as const;
export const SERVICE = "shared-mergeway";
const ADDRESS = "203.0.113.1";

/** Of one controller: to the API server, and to each pod. */
interface Weather {
  readonly api: ApiWeather;
  readonly cutFrom: Set<string>;
  streamDelayMs: number;
  /** Of messages that arrive twice. */
  doubled: number;
}

export interface ClusterShape {
  readonly controllers: number;
  readonly pods: number;
  /** Some controllers are always behind: who feeds a pod may be ahead of who leads. */
  readonly isUneven: boolean;
}

export class Cluster {
  readonly world: World;
  readonly server: ApiServer;
  /** By place: a controller that is gone is followed by another one of another name. */
  readonly controllers: (SimulatedController | undefined)[] = [];
  readonly pods: (SimulatedPod | undefined)[] = [];
  readonly weather: Weather[] = [];
  readonly #disks: Map<string, Disk> = new Map();
  #started = 0;
  #replaced = 0;
  #announced = "";
  readonly #all: SimulatedController[] = [];

  constructor(world: World, { controllers, pods, isUneven }: ClusterShape) {
    this.world = world;
    this.server = new ApiServer(world);
    for (const object of FIRST_OBJECTS) this.server.put(object.collection, object.object);
    for (let place = 0; place < controllers; place++) {
      const delayMs =
        isUneven && world.random.chance(0.3) ? world.random.between(200, 2_000) : world.random.between(2, 30);
      const api = { isCut: false, loss: 0, delayMs, isOverloaded: false, isStarting: false };
      this.weather.push({ api, cutFrom: new Set(), streamDelayMs: world.random.between(2, 30), doubled: 0 });
      this.startController(place);
    }
    for (let place = 0; place < pods; place++) this.startPod(place);
    this.#tend();
  }

  /** Nothing of it is needed any more. */
  discard(): void {
    for (const controller of this.#all) controller.discard();
  }

  get aliveControllers(): readonly SimulatedController[] {
    return this.controllers.filter((each) => each?.process.isAlive === true) as SimulatedController[];
  }

  get alivePods(): readonly SimulatedPod[] {
    return this.pods.filter((each) => each?.process.isAlive === true) as SimulatedPod[];
  }

  startController(place: number): void {
    const weather = this.weather[place];
    if (weather === undefined || this.controllers[place]?.process.isAlive === true) return;
    const name = `controller-${++this.#started}`;
    const controller = new SimulatedController(this.world, name, {
      server: this.server,
      weather: weather.api,
    });
    this.controllers[place] = controller;
    this.#all.push(controller);
    controller.start();
  }

  /** Another container of the same pod, or (`isAnew`) another pod. */
  startPod(place: number, isAnew = false): void {
    const before = this.pods[place];
    if (before?.process.isAlive === true) return;
    const name = before === undefined || isAnew ? `pod-${++this.#replaced}` : before.name;
    const disk = this.#disks.get(name);
    const pod = new SimulatedPod(this.world, name, {
      gateway: `${GATEWAY.namespace}/${GATEWAY.name}`,
      controllers: () => this.aliveControllers,
      weatherTo: (controller) => this.#weatherBetween(controller, name),
      onReady: () => this.announcePods(),
      ...(disk === undefined ? {} : { disk }),
    });
    this.pods[place] = pod;
    pod.start();
    this.announcePods();
  }

  killPod(place: number): void {
    const pod = this.pods[place];
    if (pod?.process.isAlive !== true) return;
    this.#disks.set(pod.name, pod.kill());
    this.announcePods();
  }

  /** As the kubelet and the controller of EndpointSlices do, after a moment. */
  announcePods(): void {
    this.world.outside(this.world.random.between(10, 500), () => {
      const endpoints = this.alivePods.map(({ name, isReady }, index) => ({
        addresses: [`10.0.0.${index + 1}`],
        conditions: { ready: isReady },
        targetRef: { kind: "Pod", name, namespace: GATEWAY.namespace },
      }));
      this.#announced = this.#podList();
      this.server.put(SLICES, {
        metadata: {
          name: `${SERVICE}-1`,
          namespace: GATEWAY.namespace,
          labels: {
            "kubernetes.io/service-name": SERVICE,
            "app.kubernetes.io/managed-by": "mergeway",
            "gateway.networking.k8s.io/gateway-name": GATEWAY.name,
          },
        },
        addressType: "IPv4",
        endpoints,
        ports: [],
      });
    });
  }

  /**
   * Whether the cluster has done all that it does by itself: addresses are given, pods are listed
   * as they are, every pod has found every controller, and no controller waits for events that
   * cannot come any more.
   */
  get isAtRest(): boolean {
    return (
      this.#unaddressed().length === 0 &&
      this.#podList() === this.#announced &&
      this.aliveControllers.every(
        ({ client, streams }) => !client.hasSilencedWatch && streams.size >= this.alivePods.length,
      )
    );
  }

  /** All is well from now on: whoever is gone comes back, everything gets through. */
  heal(): void {
    this.world.tell("world", "heals: from here on nothing fails");
    for (const [place, weather] of this.weather.entries()) {
      Object.assign(weather.api, {
        isCut: false,
        loss: 0,
        delayMs: 20,
        isOverloaded: false,
        isStarting: false,
      });
      weather.cutFrom.clear();
      weather.streamDelayMs = 20;
      weather.doubled = 0;
      const controller = this.controllers[place];
      if (controller?.process.isFrozen === true) this.world.thaw(controller.process);
      this.startController(place);
    }
    for (const [place, pod] of this.pods.entries()) {
      if (pod?.process.isFrozen === true) this.world.thaw(pod.process);
      this.startPod(place);
      const plane = this.pods[place]?.plane;
      if (plane !== undefined) {
        plane.isStuck = false;
        plane.delayMs = 20;
      }
    }
  }

  #weatherBetween(controller: SimulatedController, pod: string): StreamWeather {
    const weather = (): Weather | undefined => this.weather[this.controllers.indexOf(controller)];
    return {
      delay: () => this.world.random.between(1, weather()?.streamDelayMs ?? 20),
      isCut: () => weather()?.cutFrom.has(pod) ?? false,
      isDoubled: () => this.world.random.chance(weather()?.doubled ?? 0),
    };
  }

  /** Gives every Service of type LoadBalancer an address. */
  #tend(): void {
    for (const service of this.#unaddressed()) {
      this.world.tell("cluster", `gives Service ${service.metadata.name} the address ${ADDRESS}`);
      this.server.put(SERVICES, { ...service, status: { loadBalancer: { ingress: [{ ip: ADDRESS }] } } });
    }
    this.world.outside(250, () => this.#tend());
  }

  #podList(): string {
    return this.alivePods.map(({ name, isReady }) => `${name} ${isReady}`).join();
  }

  #unaddressed(): readonly ApiObject[] {
    return this.server.objects(SERVICES).filter((service) => {
      const { type } = (service["spec"] ?? {}) as { readonly type?: string };
      return type === "LoadBalancer" && service["status"] === undefined;
    });
  }
}

const FIRST_OBJECTS: readonly { readonly collection: string; readonly object: ApiObject }[] = [
  ...["infra", "team-a", "team-b", "default", "mergeway-system"].map((name) => ({
    collection: NAMESPACES,
    object: { metadata: { name, labels: { "kubernetes.io/metadata.name": name } } },
  })),
  {
    collection: CLASSES,
    object: { metadata: { name: "mergeway" }, spec: { controllerName: CONTROLLER_NAME } },
  },
  {
    collection: GATEWAYS,
    object: {
      metadata: { ...GATEWAY },
      spec: {
        gatewayClassName: "mergeway",
        allowedListeners: { namespaces: { from: "All" } },
        listeners: [
          { name: "http", port: 80, protocol: "HTTP", allowedRoutes: { namespaces: { from: "Same" } } },
        ],
      },
    },
  },
  {
    collection: "apiextensions.k8s.io/v1/customresourcedefinitions",
    object: {
      metadata: {
        name: "gateways.gateway.networking.k8s.io",
        annotations: {
          "gateway.networking.k8s.io/bundle-version": "v1.7.0",
          "gateway.networking.k8s.io/channel": "standard",
        },
      },
    },
  },
];
