/**
 * A Gateway behind a tunnel with two tenants, the doubles of Cloudflare, and the words in which the
 * tests speak about them.
 */
import { expect } from "vitest";
import { ok } from "../../../tools/cluster/bed.ts";
import { loadImage } from "../../../tools/cluster/cluster.ts";
import {
  ACCEPTED,
  eventually,
  gateway,
  http,
  httpRoute,
  listenerSet,
  type Named,
  type Place,
  ServedCluster,
  said,
} from "../support/served-cluster.ts";
import { API_URL, Cloudflare, connectorImage } from "./cloudflare.ts";

const CONNECTOR = "connector-double:test";
export const EDGE: Place = { namespace: "infra", name: "edge" };
const TEAM_A: Place = { namespace: "team-a", name: "team-a" };
const TEAM_B: Place = { namespace: "team-b", name: "team-b" };

export interface Echo {
  readonly namespace?: string;
  readonly headers?: Readonly<Record<string, readonly string[]>>;
}

function namespace(name: string, labels: Readonly<Record<string, string>> = {}): Named {
  return { apiVersion: "v1", kind: "Namespace", metadata: { name, labels } } as Named;
}

export function secret(name: string, stringData: Readonly<Record<string, string>>): Named {
  return { apiVersion: "v1", kind: "Secret", metadata: { name, namespace: "infra" }, stringData } as Named;
}

export function apiToken(name: string, token: string): Named {
  return secret(name, { "api-token": token });
}

export function parameters(name: string, tunnelSettings: object, image: string = CONNECTOR): Named {
  return {
    apiVersion: "mergeway.dev/v1alpha1",
    kind: "GatewayParameters",
    metadata: { name, namespace: "infra" },
    spec: { dataPlane: "tunnel", tunnel: { image, connections: 1, ...tunnelSettings } },
  } as Named;
}

/** A Gateway for all teams, with a listener of its own. */
export function shared(place: Place, own: string, hostname = "platform.example.com"): Named {
  return gateway(place, {
    infrastructure: { parametersRef: { group: "mergeway.dev", kind: "GatewayParameters", name: own } },
    allowedListeners: { namespaces: { from: "All" } },
    listeners: [http("platform", hostname)],
  });
}

export function parentSet({ name }: Place): object {
  return { group: "gateway.networking.k8s.io", kind: "ListenerSet", name };
}

export function at({ namespace: where, name }: Place): Named {
  return {
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "Gateway",
    metadata: { name, namespace: where },
  };
}

export function set(place: Place): Named {
  return { ...at(place), kind: "ListenerSet" };
}

export class TunnelScene {
  readonly cluster: ServedCluster;
  readonly cloudflare: Cloudflare;
  /** The id of the tunnel of EDGE. */
  tunnel = "";

  private constructor(cluster: ServedCluster, cloudflare: Cloudflare) {
    this.cluster = cluster;
    this.cloudflare = cloudflare;
  }

  static async up(name: string): Promise<TunnelScene> {
    const cluster = await ServedCluster.up(name, [
      "--set=dataPlane.tunnel.enabled=true",
      `--set=controller.extraArgs={--cloudflare-api=${API_URL}}`,
    ]);
    const cloudflare = await Cloudflare.start(cluster.bed.cluster);
    const scene = new TunnelScene(cluster, cloudflare);
    await loadImage(cluster.bed.cluster, await connectorImage(CONNECTOR, cloudflare.started));
    // The pods of a tunnel, cloudflared's container as well, satisfy the Pod Security Standard
    // "restricted".
    await cluster.apply(namespace("infra", { "pod-security.kubernetes.io/enforce": "restricted" }));
    await Promise.all([cluster.namespaceWithBackend("team-a"), cluster.namespaceWithBackend("team-b")]);
    await cluster.apply(
      apiToken("cloudflare", cloudflare.started.token),
      parameters("edge", scene.byApi("cloudflare")),
      shared(EDGE, "edge"),
      listenerSet(TEAM_A, EDGE, [http("web", "a.example.com")]),
      listenerSet(TEAM_B, EDGE, [http("web", "b.example.com")]),
      httpRoute({ ...TEAM_A, name: "web" }, { parentRefs: [parentSet(TEAM_A)] }),
      httpRoute(
        { ...TEAM_B, name: "web" },
        { parentRefs: [parentSet(TEAM_B)], hostnames: ["b.example.com"] },
      ),
    );
    scene.tunnel = await scene.programmed(EDGE);
    return scene;
  }

  async down(): Promise<void> {
    this.cloudflare.stop();
    await this.cluster.down();
  }

  byApi(credentials: string, more: object = {}): object {
    return {
      accountId: this.cloudflare.started.account,
      credentialsSecretRef: { name: credentials },
      ...more,
    };
  }

  /** The id of the Gateway's tunnel, as soon as the Gateway is programmed. */
  async programmed(place: Place, seconds = 120): Promise<string> {
    const stored = await this.cluster.settled(
      at(place),
      ({ status }) => {
        expect(said(status)).toEqual(ACCEPTED);
        expect(status?.addresses).toEqual([
          { type: "Hostname", value: expect.stringMatching(/^[0-9a-f-]{36}\.cfargotunnel\.com$/) },
        ]);
      },
      seconds,
    );
    return stored.status?.addresses?.[0]?.value.split(".")[0] ?? "";
  }

  /** The namespace of the backend that answered, or the status where none did. */
  async answerOf(host: string, headers: Readonly<Record<string, string>> = {}): Promise<string | number> {
    const { status, body } = await this.cloudflare.visit(this.tunnel, { host, headers });
    return status === 200 ? ((JSON.parse(body) as Echo).namespace ?? "") : status;
  }

  /** Everything that was seen while a Deployment was rolled, until its old pods were gone. */
  async duringRollout<T>(where: string, name: string, look: () => Promise<T>): Promise<ReadonlySet<T>> {
    const state: { isOver: boolean; problem?: unknown } = { isOver: false };
    const over = this.#rolled(where, name)
      .catch((problem: unknown) => {
        state.problem = problem;
      })
      .finally(() => {
        state.isOver = true;
      });
    const seen = new Set<T>();
    while (!state.isOver) seen.add(await look());
    await over;
    if (state.problem !== undefined) throw state.problem;
    return seen;
  }

  async #rolled(where: string, name: string): Promise<void> {
    const { bed } = this.cluster;
    await ok(bed.kubectl(["-n", where, "rollout", "status", `deploy/${name}`, "--timeout=180s"]));
    await eventually(async () => {
      const { items } = JSON.parse(await ok(bed.kubectl(["-n", where, "get", "pods", "-o", "json"]))) as {
        readonly items: readonly { metadata: { name: string; deletionTimestamp?: string } }[];
      };
      const pods = items.filter(({ metadata }) => metadata.name.startsWith(`${name}-`));
      expect(pods.filter(({ metadata }) => metadata.deletionTimestamp !== undefined)).toEqual([]);
    }, 120);
  }
}
