/**
 * A cluster in which Mergeway serves, installed by its chart, with a backend to reach; and the
 * words in which tests speak about what the API server holds. Needs `npm run build`.
 */
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import type { Condition } from "../../../src/api/metadata.ts";
import { Bed, ok } from "../../../tools/cluster/bed.ts";
import { CHART, ROOT, readText } from "../../../tools/cluster/chart.ts";
import { loadImage } from "../../../tools/cluster/cluster.ts";
import { loadSuiteImages } from "../../../tools/cluster/conformance.ts";
import { productImage } from "../../../tools/images/product-image.ts";
import { type Eventually, eventuallyWithin } from "../../support/eventually.ts";

export const SYSTEM = "mergeway-system";
export const CONTROLLER = "mergeway.dev/controller";
export const GATEWAY_API = "gateway.networking.k8s.io/v1";
export const X_API = "gateway.networking.x-k8s.io/v1alpha1";
const ECHO = "registry.k8s.io/gateway-api/conformance/echo-basic:v0.2.0";

export interface Named {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

export interface Stored extends Named {
  readonly metadata: Named["metadata"] & { readonly generation: number; readonly uid: string };
  readonly spec: Readonly<Record<string, unknown>>;
  readonly status?: Status;
}

export interface Status {
  readonly conditions?: readonly Condition[];
  readonly listeners?: readonly ListenerStatus[];
  readonly addresses?: readonly { readonly type: string; readonly value: string }[];
  readonly attachedListenerSets?: number;
  readonly supportedFeatures?: readonly { readonly name: string }[];
  readonly parents?: readonly ParentStatus[];
}

export interface ListenerStatus {
  readonly name: string;
  readonly port?: number;
  readonly attachedRoutes: number;
  readonly supportedKinds: readonly { readonly kind: string }[];
  readonly conditions: readonly Condition[];
}

export interface ParentStatus {
  readonly parentRef: Readonly<Record<string, unknown>>;
  readonly controllerName: string;
  readonly conditions: readonly Condition[];
}

/** `Accepted=True/Accepted` for each condition, by type: short enough to compare whole. */
export function said(
  holder: { readonly conditions?: readonly Condition[] } | undefined,
): Readonly<Record<string, string>> {
  const pairs = (holder?.conditions ?? []).map(({ type, status, reason }): [string, string] => [
    type,
    `${status}/${reason}`,
  ]);
  return Object.fromEntries(pairs);
}

export function conditionOf(
  holder: { readonly conditions?: readonly Condition[] } | undefined,
  type: string,
): Condition {
  const found = holder?.conditions?.find((condition) => condition.type === type);
  if (found === undefined)
    throw new Error(`there is no condition ${type} among ${JSON.stringify(said(holder))}`);
  return found;
}

export function listenerOf(object: Stored | undefined, name: string): ListenerStatus {
  const found = object?.status?.listeners?.find((listener) => listener.name === name);
  if (found === undefined) throw new Error(`there is no status of listener ${name}`);
  return found;
}

/** Every condition that an accepted listener has. */
export const ALL_WELL: Readonly<Record<string, string>> = {
  Accepted: "True/Accepted",
  Conflicted: "False/NoConflicts",
  ResolvedRefs: "True/ResolvedRefs",
  Programmed: "True/Programmed",
};

export const ACCEPTED: Readonly<Record<string, string>> = {
  Accepted: "True/Accepted",
  Programmed: "True/Programmed",
};

export interface Request {
  readonly url: string;
  readonly address: string;
  /** PEM of the authority that the server must prove itself by. */
  readonly authority?: string;
}

export class ServedCluster {
  readonly bed: Bed;
  readonly #folder: string = mkdtempSync(join(tmpdir(), "mergeway-served-"));

  private constructor(bed: Bed) {
    this.bed = bed;
  }

  /**
   * Only the standard CRDs of the Gateway API, and one replica of the controller, whose log is then
   * the whole log.
   */
  static async up(name: string, settings: readonly string[] = []): Promise<ServedCluster> {
    const bed = await Bed.up(name);
    try {
      await install(bed, settings);
    } catch (error) {
      await bed.down();
      throw error;
    }
    return new ServedCluster(bed);
  }

  async down(): Promise<void> {
    rmSync(this.#folder, { recursive: true, force: true });
    await this.bed.down();
  }

  /** In one request to the API server each, in this order. */
  async apply(...objects: readonly object[]): Promise<void> {
    const list = { apiVersion: "v1", kind: "List", items: objects };
    await ok(this.bed.kubectl(["apply", "-f", "-"], JSON.stringify(list)));
  }

  /** A namespace with a Service `echo` that answers, on port 8080. */
  async namespaceWithBackend(name: string, labels: Readonly<Record<string, string>> = {}): Promise<void> {
    await this.apply({ apiVersion: "v1", kind: "Namespace", metadata: { name, labels } }, ...backend(name));
    await ok(this.bed.kubectl(["rollout", "status", "-n", name, "deploy/echo", "--timeout=240s"]));
  }

  async patch(object: Named, patch: object, ...flags: readonly string[]): Promise<void> {
    await ok(
      this.bed.kubectl(["patch", ...address(object), "--type=merge", "-p", JSON.stringify(patch), ...flags]),
    );
  }

  async remove(...objects: readonly Named[]): Promise<void> {
    for (const object of objects)
      await ok(this.bed.kubectl(["delete", ...address(object), "--ignore-not-found"]));
  }

  async find(object: Named): Promise<Stored | undefined> {
    const out = await ok(this.bed.kubectl(["get", ...address(object), "-o", "json", "--ignore-not-found"]));
    return out === "" ? undefined : (JSON.parse(out) as Stored);
  }

  async get(object: Named): Promise<Stored> {
    const found = await this.find(object);
    if (found === undefined) throw new Error(`there is no ${address(object).join(" ")}`);
    return found;
  }

  /**
   * The object as soon as its status speaks of its newest generation and the check holds; the
   * check's failure when that takes too long.
   */
  async settled(object: Named, check: (stored: Stored) => void, seconds = 120): Promise<Stored> {
    return eventually(async () => {
      const stored = await this.get(object);
      for (const { type, observedGeneration } of stored.status?.conditions ?? [])
        expect(observedGeneration, `observedGeneration of ${type}`).toBe(stored.metadata.generation);
      check(stored);
      return stored;
    }, seconds);
  }

  /** Names of what carries a Gateway's infrastructure, as `kind/name`. */
  async infrastructureIn(namespace: string): Promise<readonly string[]> {
    const kinds =
      "deployments,services,serviceaccounts,poddisruptionbudgets,horizontalpodautoscalers.autoscaling";
    const out = await ok(
      this.bed.kubectl([
        "get",
        kinds,
        "-n",
        namespace,
        "-l",
        "app.kubernetes.io/managed-by=mergeway",
        "-o",
        "name",
      ]),
    );
    return out
      .split("\n")
      .filter((line) => line !== "")
      .sort();
  }

  async addressOf(gateway: Named): Promise<string> {
    const stored = await this.settled(gateway, ({ status }) => {
      expect(said(status)["Programmed"]).toBe("True/Programmed");
      expect(status?.addresses).toHaveLength(1);
    });
    return stored.status?.addresses?.[0]?.value ?? "";
  }

  /** The answer's code; 0 where there is none. */
  async request({ url, address: at, authority }: Request): Promise<number> {
    const { hostname, port, protocol } = new URL(url);
    const number = port === "" ? (protocol === "https:" ? "443" : "80") : port;
    const flags = ["-sS", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "20"];
    const trust = authority === undefined ? [] : ["--cacert", this.#fileOf(authority)];
    const resolve = ["--resolve", `${hostname}:${number}:${at}`];
    const { out } = await this.bed.run(["curl", ...flags, ...resolve, ...trust, url]);
    return Number(out);
  }

  async answers(request: Request, code = 200): Promise<void> {
    await eventually(async () => expect(await this.request(request), request.url).toBe(code), 120);
  }

  #fileOf(authority: string): string {
    const file = join(this.#folder, `${createHash("sha256").update(authority).digest("hex")}.pem`);
    writeFileSync(file, authority);
    return file;
  }

  /** What the controller has said so far, one JSON object a line. */
  async log(): Promise<string> {
    return ok(this.bed.kubectl(["-n", SYSTEM, "logs", "deploy/mergeway", "--tail=-1"]));
  }

  async complaints(level: "warn" | "error"): Promise<readonly string[]> {
    const lines = (await this.log()).split("\n").filter((line) => line !== "");
    const entries = lines.map((line) => JSON.parse(line) as { level: string; message: string });
    return entries.filter((entry) => entry.level === level).map(({ message }) => message);
  }
}

async function install(bed: Bed, settings: readonly string[]): Promise<void> {
  const { version } = JSON.parse(readText("package.json")) as { version: string };
  await loadImage(bed.cluster, await productImage(ROOT, `mergeway:${version}`));
  await loadSuiteImages(bed.cluster);
  await ok(bed.kubectl(["create", "namespace", SYSTEM]));
  const flags = ["--include-crds", "-n", SYSTEM, "--set=replicas=1", ...settings];
  const manifests = await ok(bed.helm(["template", "mergeway", CHART, ...flags]));
  await ok(bed.kubectl(["apply", "--server-side", "-n", SYSTEM, "-f", "-"], manifests));
  await ok(bed.kubectl(["rollout", "status", "-n", SYSTEM, "deploy/mergeway", "--timeout=240s"]));
}

function address({ apiVersion, kind, metadata: { name, namespace } }: Named): readonly string[] {
  const group = apiVersion.includes("/") ? `.${apiVersion.slice(0, apiVersion.indexOf("/"))}` : "";
  return [`${kind}${group}/${name}`, ...(namespace === undefined ? [] : ["-n", namespace])];
}

export const eventually: Eventually = eventuallyWithin(60, 200);

export interface Place {
  readonly namespace: string;
  readonly name: string;
}

export function gateway({ namespace, name }: Place, spec: object, annotations: object = {}): Named {
  const whole = { gatewayClassName: "mergeway", ...spec };
  const metadata = { name, namespace, ...(Object.keys(annotations).length === 0 ? {} : { annotations }) };
  return { apiVersion: GATEWAY_API, kind: "Gateway", metadata, spec: whole } as Named;
}

export function listenerSet({ namespace, name }: Place, parent: Place, listeners: readonly object[]): Named {
  const spec = { parentRef: { name: parent.name, namespace: parent.namespace }, listeners };
  return { apiVersion: GATEWAY_API, kind: "ListenerSet", metadata: { name, namespace }, spec } as Named;
}

export function xListenerSet(place: Place, parent: Place, listeners: readonly object[]): Named {
  return { ...listenerSet(place, parent, listeners), apiVersion: X_API, kind: "XListenerSet" };
}

export function httpRoute({ namespace, name }: Place, spec: object): Named {
  const rules = [{ backendRefs: [{ name: "echo", port: 8080 }] }];
  return {
    apiVersion: GATEWAY_API,
    kind: "HTTPRoute",
    metadata: { name, namespace },
    spec: { rules, ...spec },
  } as Named;
}

export function http(name: string, hostname: string, port = 80): object {
  return { name, hostname, port, protocol: "HTTP" };
}

export function tlsSecret(
  { namespace, name }: Place,
  pair: { readonly cert: string; readonly key: string },
): Named {
  const stringData = { "tls.crt": pair.cert, "tls.key": pair.key };
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name, namespace },
    type: "kubernetes.io/tls",
    stringData,
  } as Named;
}

function backend(namespace: string): readonly object[] {
  const env = Object.entries({ POD_NAME: "echo", NAMESPACE: namespace }).map(([name, value]) => ({
    name,
    value,
  }));
  const metadata = { name: "echo", namespace };
  return [
    {
      apiVersion: "v1",
      kind: "Service",
      metadata,
      spec: { selector: { app: "echo" }, ports: [{ port: 8080, targetPort: 3000 }] },
    },
    {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata,
      spec: {
        selector: { matchLabels: { app: "echo" } },
        template: {
          metadata: { labels: { app: "echo" } },
          spec: { containers: [{ name: "echo", image: ECHO, env }] },
        },
      },
    },
  ];
}
