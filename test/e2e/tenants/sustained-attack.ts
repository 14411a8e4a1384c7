/**
 * The cluster of world.ts while mallory is at work, and the words in which the tests speak about
 * it.
 */
import { expect, vi } from "vitest";
import type { Condition } from "../../../src/api/metadata.ts";
import { type Bed, ok } from "../../../tools/cluster/bed.ts";
import { readText } from "../../../tools/cluster/chart.ts";
import { type Answer, type ApiUser, adminToken, InClusterClient } from "../support/in-cluster-client.ts";
import { type Load, type RunningLoad, startLoad } from "../support/running-load.ts";
import type { Outcome, Try } from "./unauthorised-stream.ts";
import { EMBEDDED, FRONTS, type Front, GATEWAY_API, HOST, object, SYSTEM, tenantsUp } from "./world.ts";

export const WAIT: { readonly timeout: number; readonly interval: number } = {
  timeout: 120_000,
  interval: 250,
};
/** Where mallory may write. */
export const OWN: string = `/apis/${GATEWAY_API}/namespaces/mallory`;

export interface Stored {
  readonly metadata: { readonly name: string; readonly creationTimestamp: string; readonly uid: string };
  readonly status?: {
    readonly conditions?: readonly Condition[];
    readonly listeners?: readonly { readonly name: string; readonly conditions: readonly Condition[] }[];
    readonly parents?: readonly { readonly conditions: readonly Condition[] }[];
  };
}

interface Pod {
  readonly name: string;
  readonly uid: string;
  readonly address: string;
}

interface Facts {
  readonly token: string;
  readonly addresses: ReadonlyMap<Front, string>;
  readonly controller: string;
}

export type Said = Readonly<Record<string, string>>;

/** `True/Accepted` for each condition, by type. */
export function saidIn(conditions: readonly Condition[] = []): Said {
  return Object.fromEntries(conditions.map(({ type, status, reason }) => [type, `${status}/${reason}`]));
}

export class SustainedAttack {
  readonly bed: Bed;
  readonly admin: ApiUser;
  readonly mallory: ApiUser;
  /** Of the controller's pod. */
  readonly controller: string;
  readonly #addresses: ReadonlyMap<Front, string>;
  readonly #client: InClusterClient;
  readonly #loads: ReadonlyMap<Front, RunningLoad>;
  #before = "";

  private constructor(bed: Bed, client: InClusterClient, { token, addresses, controller }: Facts) {
    this.bed = bed;
    this.#addresses = addresses;
    this.controller = controller;
    this.#client = client;
    this.admin = client.as(adminToken(bed.cluster));
    this.mallory = client.as(token);
    this.#loads = new Map([...addresses].map(([front, address]) => [front, startLoad(bed, address, HOST)]));
  }

  static async begin(name: string): Promise<SustainedAttack> {
    const bed = await tenantsUp(name);
    try {
      return await SustainedAttack.#on(bed);
    } catch (error) {
      await bed.down();
      throw error;
    }
  }

  static async #on(bed: Bed): Promise<SustainedAttack> {
    const client = new InClusterClient(bed.cluster);
    const get = (...args: readonly string[]): Promise<string> => ok(bed.kubectl(["get", ...args]));
    const addresses = new Map<Front, string>();
    for (const front of FRONTS) {
      const path = "jsonpath={.status.addresses[0].value}";
      const address = await get("-n", "infra", `gateway/${front.gateway}`, "-o", path);
      addresses.set(front, address);
      await vi.waitUntil(
        async () => (await whoServes(client, address, HOST).catch(() => "nobody")) === "alice",
        WAIT,
      );
    }
    const facts = {
      token: (await ok(bed.kubectl(["create", "token", "-n", "mallory", "mallory", "--duration=2h"]))).trim(),
      addresses,
      controller: await get("pods", "-n", SYSTEM, "-o", "jsonpath={.items[0].status.podIP}"),
    };
    const attack = new SustainedAttack(bed, client, facts);
    attack.#before = await attack.statusesOfAlice();
    return attack;
  }

  async end(): Promise<void> {
    try {
      for (const front of FRONTS) await this.endLoad(front);
    } finally {
      this.#client.close();
      await this.bed.down();
    }
  }

  /** Alice's statuses when it began. */
  get before(): string {
    return this.#before;
  }

  /** What became of alice's requests. */
  async endLoad(front: Front): Promise<Load> {
    const load = this.#loads.get(front);
    if (load === undefined) throw new Error(`there is no load of ${front.gateway}`);
    return load.stop();
  }

  /** The answer of a Gateway to mallory's own client. */
  async ask(front: Front, host: string, path = "/"): Promise<Answer> {
    return this.#client.request({ url: `http://${this.#addresses.get(front)}${path}`, headers: { host } });
  }

  /** What only the platform team may write. */
  async platform(manifest: object): Promise<void> {
    await ok(this.bed.kubectl(["apply", "-f", "-"], JSON.stringify(manifest)));
  }

  /** The pod that serves a Gateway. */
  async podOf(namespace: string, gateway: string): Promise<Pod> {
    const selector = `gateway.networking.k8s.io/gateway-name=${gateway}`;
    const { items } = JSON.parse(
      await this.kubectl("get", "pods", "-n", namespace, "-l", selector, "-o", "json"),
    ) as { items: readonly { metadata: { name: string; uid: string }; status: { podIP: string } }[] };
    const [pod, ...others] = items;
    if (pod === undefined || others.length > 0) throw new Error(`${gateway} has not one pod`);
    const { name, uid } = pod.metadata;
    return { name, uid, address: pod.status.podIP };
  }

  kubectl(...args: readonly string[]): Promise<string> {
    return ok(this.bed.kubectl(args));
  }

  /** The tenant whose backend answers for a hostname; the status where none does. */
  servedBy(host: string = HOST, front: Front = EMBEDDED): Promise<string> {
    return whoServes(this.#client, this.#addresses.get(front) ?? "", host);
  }

  async statusesOfAlice(): Promise<string> {
    const paths = [...FRONTS.map(({ crown }) => `listenersets/${crown}`), "httproutes/throne"];
    const answers = paths.map((path) => this.admin.get(`/apis/${GATEWAY_API}/namespaces/alice/${path}`));
    const objects = (await Promise.all(answers)).map(({ body }) => JSON.parse(body) as Stored);
    return JSON.stringify(objects.map(({ status }) => status));
  }

  /** Mallory writes something; the API server takes it. */
  async writes(plural: string, manifest: object): Promise<Stored> {
    const { status, body } = await this.mallory.create(`${OWN}/${plural}`, manifest);
    expect(status, body).toBe(201);
    return JSON.parse(body) as Stored;
  }

  /** What mallory sees of an object of hers. */
  async read(path: string): Promise<Stored> {
    const { status, body } = await this.mallory.get(path);
    expect(status, body).toBe(200);
    return JSON.parse(body) as Stored;
  }

  /** `type=status/reason` of a set's first listener. */
  async listenerOf(name: string): Promise<Said> {
    return saidIn((await this.read(`${OWN}/listenersets/${name}`)).status?.listeners?.[0]?.conditions);
  }

  async parentOf(name: string): Promise<Said> {
    return saidIn((await this.read(`${OWN}/httproutes/${name}`)).status?.parents?.[0]?.conditions);
  }

  /** `reason: note` of the Events about an object, as the platform team sees them. */
  async eventsOf(namespace: string, name: string): Promise<readonly string[]> {
    const { body } = await this.admin.get(`/apis/events.k8s.io/v1/namespaces/${namespace}/events`);
    const { items } = JSON.parse(body) as {
      items: readonly { regarding: { name: string }; reason: string; note: string }[];
    };
    const about = items.filter(({ regarding }) => regarding.name === name);
    return about.map(({ reason, note }) => `${reason}: ${note}`);
  }

  /** The value of one line of the controller's metrics. */
  async metric(line: string): Promise<number> {
    const { body } = await this.#client.request({ url: `http://${this.controller}:9090/metrics` });
    const found = body.split("\n").find((each) => each.startsWith(`${line} `));
    return found === undefined ? 0 : Number(found.slice(line.length + 1));
  }

  log(): Promise<string> {
    return this.kubectl("logs", "-n", SYSTEM, "deploy/mergeway", "--tail=-1");
  }

  /** Mallory may make any token that she likes of accounts in her namespace. */
  async tokenOf(account: string, audience: string, pod?: { name: string; uid: string }): Promise<string> {
    const object = pod && { apiVersion: "v1", kind: "Pod", name: pod.name, uid: pod.uid };
    const bound = object === undefined ? {} : { boundObjectRef: object };
    const request = { spec: { audiences: [audience], expirationSeconds: 600, ...bound } };
    const path = `/api/v1/namespaces/mallory/serviceaccounts/${account}/token`;
    const { status, body } = await this.mallory.create(path, request);
    expect(status, body).toBe(201);
    return (JSON.parse(body) as { status: { token: string } }).status.token;
  }

  /** Lets a pod of mallory's try. */
  async runUnauthorisedClient(tries: readonly Try[]): Promise<ReadonlyMap<string, Outcome>> {
    const source = { "client.ts": readText("test/e2e/tenants/unauthorised-stream.ts") };
    const configMap = object("v1", "ConfigMap", "mallory/unauthorised-client", { data: source });
    const core = "/api/v1/namespaces/mallory";
    expect((await this.mallory.create(`${core}/configmaps`, configMap)).status).toBe(201);
    expect((await this.mallory.create(`${core}/pods`, unauthorisedPod(tries))).status).toBe(201);
    const done = "--for=jsonpath={.status.phase}=Succeeded";
    await this.kubectl("wait", "-n", "mallory", done, "pod/unauthorised-client", "--timeout=600s");
    const said = JSON.parse(
      await this.kubectl("logs", "-n", "mallory", "pod/unauthorised-client"),
    ) as readonly Outcome[];
    return new Map(said.map((outcome) => [outcome.name, outcome]));
  }
}

async function whoServes(client: InClusterClient, address: string, host: string): Promise<string> {
  const { status, body } = await client.request({ url: `http://${address}/`, headers: { host } });
  return status === 200 ? (JSON.parse(body) as { namespace: string }).namespace : String(status);
}

function unauthorisedPod(tries: readonly Try[]): object {
  const { version } = JSON.parse(readText("package.json")) as { version: string };
  const sources = [
    { serviceAccountToken: { path: "api" } },
    { serviceAccountToken: { path: "ours", audience: "mergeway.dev/controller" } },
  ];
  const container = {
    name: "unauthorised-client",
    image: `mergeway:${version}`,
    command: ["/usr/bin/node", "/unauthorised-client/client.ts"],
    env: [
      { name: "TRIES", value: JSON.stringify(tries) },
      { name: "STREAM", value: `mergeway.${SYSTEM}.svc:18000` },
    ],
    volumeMounts: ["unauthorised-client", "tokens"].map((name) => ({ name, mountPath: `/${name}` })),
  };
  return object("v1", "Pod", "mallory/unauthorised-client", {
    spec: {
      serviceAccountName: "mallory",
      restartPolicy: "Never",
      containers: [container],
      volumes: [
        { name: "unauthorised-client", configMap: { name: "unauthorised-client" } },
        { name: "tokens", projected: { sources } },
      ],
    },
  });
}
