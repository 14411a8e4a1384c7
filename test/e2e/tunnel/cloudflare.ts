/**
 * The doubles of Cloudflare that run inside a cluster's network, as tests outside of it see them;
 * and images of connectors that know the way to them.
 */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import type { IngressRule } from "../../../src/dataplanes/tunnel/cloudflare/tunnel-configuration.ts";
import { ROOT } from "../../../tools/cluster/chart.ts";
import { inside } from "../../../tools/cluster/namespace.ts";
import { nodeAddress } from "../../../tools/cluster/network.ts";
import type { Cluster } from "../../../tools/host/places.ts";
import type { ImageSpec } from "../../../tools/images/image.ts";
import { productImage } from "../../../tools/images/product-image.ts";
import type { Entry } from "../../../tools/images/tar.ts";
import type { Fault } from "../../dataplanes/tunnel/support/api-double.ts";
import type { Answer, EdgeRequest } from "../../dataplanes/tunnel/support/edge-double.ts";
import type { FaultFor, Order, Started, TunnelSeen } from "./doubles.ts";

const PROGRAM = fileURLToPath(new URL("doubles.ts", import.meta.url));
/**
 * Known before the doubles run, because the controller is told when it is installed. Nothing else
 * listens in a cluster's network.
 */
const API_PORT = 18100;
export const API_URL: string = `http://${nodeAddress}:${API_PORT}/client/v4`;

type Child = ChildProcessByStdio<Writable, Readable, null>;

export class Cloudflare {
  readonly started: Started;
  readonly #child: Child;
  readonly #waiting: Map<number, (answer: { result?: unknown; error?: string }) => void> = new Map();
  #orders = 0;

  private constructor(child: Child, started: Started) {
    this.#child = child;
    this.started = started;
  }

  static async start(cluster: Cluster): Promise<Cloudflare> {
    const [program, args] = inside(cluster, [process.execPath, PROGRAM, nodeAddress, String(API_PORT)]);
    const child = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
    const lines = createInterface({ input: child.stdout });
    const first = await new Promise<string>((resolve, reject) => {
      lines.once("line", resolve);
      child.once("exit", () => reject(new Error("the doubles of Cloudflare did not start")));
    });
    const cloudflare = new Cloudflare(child, JSON.parse(first) as Started);
    lines.on("line", (line) => {
      const answer = JSON.parse(line) as { id: number; result?: unknown; error?: string };
      cloudflare.#waiting.get(answer.id)?.(answer);
      cloudflare.#waiting.delete(answer.id);
    });
    return cloudflare;
  }

  stop(): void {
    this.#child.stdin.end();
  }

  tunnels(): Promise<readonly TunnelSeen[]> {
    return this.#order({ do: "tunnels" }) as Promise<readonly TunnelSeen[]>;
  }

  async named(name: string): Promise<TunnelSeen | undefined> {
    return (await this.tunnels()).find((tunnel) => tunnel.name === name && !tunnel.deleted);
  }

  requests(): Promise<readonly string[]> {
    return this.#order({ do: "requests" }) as Promise<readonly string[]>;
  }

  visit(tunnel: string, visit: EdgeRequest): Promise<Answer> {
    return this.#order({ do: "visit", tunnel, visit }) as Promise<Answer>;
  }

  /** From now on, and until it is said anew: without a fault, all is well. */
  async fault(fault?: FaultFor): Promise<void> {
    await this.#order({ do: "fault", ...(fault === undefined ? {} : { fault }) });
  }

  /** Of the next requests, one each. */
  async faults(...faults: readonly Fault[]): Promise<void> {
    await this.#order({ do: "faults", faults });
  }

  /** Whether the edge takes connectors; those that are connected go when it does not. */
  async accept(accepting: boolean): Promise<void> {
    await this.#order({ do: "accept", accepting });
  }

  /** A tunnel that somebody has made by hand, with its rules. */
  add(name: string, ...ingress: readonly IngressRule[]): Promise<string> {
    return this.#order({ do: "add", name, ingress }) as Promise<string>;
  }

  async #order(order: Order): Promise<unknown> {
    const id = this.#orders++;
    const answered = new Promise<{ result?: unknown; error?: string }>((resolve) =>
      this.#waiting.set(id, resolve),
    );
    this.#child.stdin.write(`${JSON.stringify({ id, order })}\n`);
    const { result, error } = await answered;
    if (error !== undefined) throw new Error(error);
    return result;
  }
}

/** The connector double in cloudflared's place: the same arguments, the same environment. */
export function connectorImage(reference: string, started: Started): Promise<ImageSpec> {
  const folder = join(ROOT, "test", "dataplanes", "tunnel", "support");
  const sources = readdirSync(folder)
    .filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"))
    .map(
      (name): Entry => ({
        kind: "file",
        path: `/app/connector/${name}`,
        mode: 0o644,
        source: join(folder, name),
      }),
    );
  return image(reference, started, {
    entrypoint: ["/usr/bin/node", "/app/connector/connector-double.ts"],
    files: [...sources, textFile("/app/package.json", '{"type":"module"}')],
  });
}

/** Real cloudflared; its checks of the way to Cloudflare are left out: there is none here. */
export function cloudflaredImage(reference: string, started: Started, program: string): Promise<ImageSpec> {
  const wrapper = [
    'const { spawn } = require("node:child_process");',
    "const [tunnel, ...rest] = process.argv.slice(1);",
    'const child = spawn("/cloudflared", [tunnel, "--no-prechecks", ...rest], { stdio: "inherit" });',
    'process.on("SIGTERM", () => child.kill("SIGTERM"));',
    'child.on("exit", (code) => process.exit(code ?? 1));',
  ].join("\n");
  return image(reference, started, {
    entrypoint: ["/usr/bin/node", "-e", wrapper, "--"],
    files: [{ kind: "file", path: "/cloudflared", mode: 0o755, source: program }],
  });
}

async function image(
  reference: string,
  { ca, edge }: Started,
  { entrypoint, files }: { readonly entrypoint: readonly string[]; readonly files: readonly Entry[] },
): Promise<ImageSpec> {
  const { layers, config } = await productImage(ROOT, reference);
  return {
    reference,
    layers: [...layers, [...files, textFile("/edge-ca.pem", ca)]],
    config: {
      ...config,
      entrypoint,
      env: [...(config.env ?? []), `TUNNEL_EDGE=${edge}`, "TUNNEL_CACERT=/edge-ca.pem"],
    },
  };
}

function textFile(path: string, text: string): Entry {
  return { kind: "file", path, mode: 0o644, source: Buffer.from(text) };
}
