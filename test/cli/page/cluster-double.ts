/** A cluster of two teams on one Gateway, with statuses as the controller writes them. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { parse } from "yaml";
import { keyFor } from "../../../src/api/key.ts";
import { GROUP_OF_KIND, type Kind, type Resource } from "../../../src/api/resource.ts";
import { openManifests } from "../../../src/cli/workspace/workspace.ts";
import { DEFAULT_CONTROLLER } from "../../../src/engine/foundation/settings.ts";
import { isClusterScoped, PLURAL_OF_KIND } from "../../../src/kubernetes/kinds.ts";
import { renderStatus } from "../../../src/status/render.ts";
import { type Answer, type Seen, ServerDouble } from "../../kubernetes/server-double.ts";
import { folder, ROOT } from "../mergeway.ts";

/** Every name of the other team has it, and nothing else does. */
export const RIVAL = "q7x";

const set = (namespace: string, name: string, created: string, hostnames: readonly string[]): string =>
  JSON.stringify({
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "ListenerSet",
    metadata: { name, namespace, creationTimestamp: created, generation: 1 },
    spec: {
      parentRef: { name: "shared", namespace: "infra" },
      listeners: hostnames.map((hostname, index) => ({
        name: `${name}-${index}`,
        port: 80,
        protocol: "HTTP",
        hostname,
      })),
    },
  });

const route = (namespace: string, parent: object, backend: string): string =>
  JSON.stringify({
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "HTTPRoute",
    metadata: { name: `${backend}-route`, namespace, generation: 1 },
    spec: { parentRefs: [parent], rules: [{ backendRefs: [{ name: backend, port: 80 }] }] },
  });

const MANIFESTS = [
  `{apiVersion: v1, kind: Namespace, metadata: {name: infra}}`,
  `{apiVersion: v1, kind: Namespace, metadata: {name: ours}}`,
  `{apiVersion: v1, kind: Namespace, metadata: {name: rival-${RIVAL}}}`,
  `{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: mergeway, generation: 1}, spec: {controllerName: ${DEFAULT_CONTROLLER}}}`,
  JSON.stringify({
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "Gateway",
    metadata: { name: "shared", namespace: "infra", generation: 1 },
    spec: {
      gatewayClassName: "mergeway",
      allowedListeners: { namespaces: { from: "All" } },
      listeners: [
        { name: "web", port: 80, protocol: "HTTP", allowedRoutes: { namespaces: { from: "All" } } },
      ],
    },
  }),
  set(`rival-${RIVAL}`, `set-${RIVAL}`, "2026-01-01T00:00:00Z", ["shop.example.com", `${RIVAL}.example.com`]),
  route(`rival-${RIVAL}`, { kind: "ListenerSet", name: `set-${RIVAL}` }, `backend-${RIVAL}`),
  set("ours", "mine", "2026-02-01T00:00:00Z", ["shop.example.com", "mine.example.com"]),
  route("ours", { kind: "ListenerSet", name: "mine" }, "mine"),
  route("ours", { name: "shared", namespace: "infra", sectionName: "web" }, "direct"),
  route("ours", { name: "elsewhere" }, "lost"),
  `{apiVersion: v1, kind: Service, metadata: {name: mine, namespace: ours}, spec: {ports: [{port: 80}]}}`,
  JSON.stringify({
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { name: "mine-1", namespace: "ours", labels: { "kubernetes.io/service-name": "mine" } },
    addressType: "IPv4",
    endpoints: [{ addresses: ["10.0.0.1"] }],
    ports: [{ port: 8080 }],
  }),
];

export async function writtenResources(): Promise<readonly Resource[]> {
  const { resources, engine } = await openManifests([folder({ "all.yaml": MANIFESTS.join("\n---\n") })]);
  return Array.from(resources, ([key, resource]): Resource => {
    const verdict = engine.verdict(key);
    if (verdict === undefined) return resource;
    const options = { controllerName: DEFAULT_CONTROLLER, now: "2026-06-01T00:00:00Z" };
    return { ...resource, status: renderStatus(resource, verdict, options) } as Resource;
  });
}

/** What somebody may list: everything, or these. */
export interface Rights {
  readonly namespaces?: readonly string[];
  readonly forbidden?: readonly string[];
}

export class ClusterDouble {
  rights: ReadonlyMap<string, Rights>;
  readonly #objects: Map<string, Resource>;
  readonly #watches: Set<{ readonly kind: Kind; readonly namespace: string | undefined; answer: Answer }> =
    new Set();
  #version = 10;

  constructor(objects: readonly Resource[], rights: Readonly<Record<string, Rights>>) {
    this.#objects = new Map(objects.map((object) => [keyOf(object), object]));
    this.rights = new Map(Object.entries(rights));
  }

  async start(): Promise<{ readonly url: string; breakConnections(): void }> {
    const double = await ServerDouble.start((seen, answer) => this.#answer(seen, answer), keyPair());
    onTestFinished(() => double.stop());
    return { url: double.url.origin, breakConnections: () => double.breakConnections() };
  }

  remove(key: string): void {
    const object = this.#objects.get(key);
    if (object === undefined) throw new Error(`there is no ${key}`);
    this.#objects.delete(key);
    this.#tell("DELETED", object);
  }

  put(object: Resource): void {
    this.#objects.set(keyOf(object), object);
    this.#tell("MODIFIED", object);
  }

  #tell(type: string, object: Resource): void {
    const resourceVersion = String(++this.#version);
    const told = { ...object, metadata: { ...object.metadata, resourceVersion } };
    for (const { kind, namespace, answer } of this.#watches) {
      if (kind === object.kind && (namespace ?? object.metadata.namespace) === object.metadata.namespace)
        answer.events({ type, object: told });
    }
  }

  #answer(seen: Seen, answer: Answer): void {
    const fixed = discoveryAt(seen.path);
    if (fixed !== undefined) answer.json(fixed);
    else this.#collection(seen, answer);
  }

  #collection({ path, query, headers }: Seen, answer: Answer): void {
    const [, namespace, plural = ""] = /(?:\/namespaces\/([^/]+))?\/([a-z]+)$/.exec(path) ?? [];
    const user = headers.authorization?.replace("Bearer ", "") ?? "";
    const found = KINDS.find((kind) => PLURAL_OF_KIND[kind] === plural);
    const group = found === undefined ? "" : GROUP_OF_KIND[found];
    if (!this.#may(user, plural, namespace)) {
      const name = group === "" ? plural : `${plural}.${group}`;
      const message = `${name} is forbidden: User "${user}" cannot list resource "${plural}"`;
      answer.json({ kind: "Status", code: 403, reason: "Forbidden", message }, 403);
    } else if (found !== undefined && query.get("watch") === "true") {
      answer.events();
      this.#watches.add({ kind: found, namespace, answer });
    } else {
      const items = [...this.#objects.values()].filter(
        ({ kind, metadata }) =>
          kind === found && (namespace === undefined || metadata.namespace === namespace),
      );
      answer.json({
        metadata: { resourceVersion: String(this.#version) },
        items: items.map((item) => ({ ...item, metadata: { ...item.metadata, resourceVersion: "5" } })),
      });
    }
  }

  #may(user: string, plural: string, namespace: string | undefined): boolean {
    const rights = this.rights.get(user);
    if (rights === undefined || rights.forbidden?.includes(plural) === true) return false;
    if (rights.namespaces === undefined) return true;
    return namespace !== undefined && rights.namespaces.includes(namespace);
  }
}

function keyPair(): { readonly cert: Buffer; readonly key: Buffer } {
  const text = readFileSync(join(ROOT, "examples/two-teams/platform-certificate.yaml"), "utf8");
  const { data } = parse(text) as { data: Record<"tls.crt" | "tls.key", string> };
  return { cert: Buffer.from(data["tls.crt"], "base64"), key: Buffer.from(data["tls.key"], "base64") };
}

const KINDS = Object.keys(PLURAL_OF_KIND) as readonly Kind[];
const VERSIONS: Readonly<Record<string, string>> = { "mergeway.dev": "v1alpha1" };
const GROUPS = [...new Set(Object.values(GROUP_OF_KIND))]
  .filter((group) => group !== "" && group !== "gateway.networking.x-k8s.io")
  .map((name) => ({ name, versions: [{ version: VERSIONS[name] ?? "v1" }] }));

function discoveryAt(path: string): unknown {
  if (path === "/version") return { major: "1", minor: "36" };
  if (path === "/apis") return { groups: GROUPS };
  const group = GROUPS.find(({ name }) => path === `/apis/${name}/${VERSIONS[name] ?? "v1"}`);
  return group && { resources: resourcesOf(group.name) };
}

function resourcesOf(group: string): unknown {
  return KINDS.filter((kind) => GROUP_OF_KIND[kind] === group && !kind.startsWith("X")).map((kind) => ({
    name: PLURAL_OF_KIND[kind],
    kind,
  }));
}

function keyOf({ kind, metadata }: Resource): string {
  return keyFor(kind, isClusterScoped(kind) ? "" : (metadata.namespace ?? ""), metadata.name);
}
