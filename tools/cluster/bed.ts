import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { type Cluster, clusterNamed } from "../host/places.ts";
import { envoyImage, envoyReference } from "../images/envoy-image.ts";
import { build, builtFile, builtFolder } from "../programs/build.ts";
import { down, hasImage, insideEnvironment, loadImage, up } from "./cluster.ts";
import { applyCrds } from "./conformance.ts";
import { inside } from "./namespace.ts";

export interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/**
 * One cluster of a test file's own, with the CRDs of the Gateway API and the image of Envoy, which
 * the chart names.
 */
export class Bed {
  readonly cluster: Cluster;

  private constructor(cluster: Cluster) {
    this.cluster = cluster;
  }

  static async up(name: string, crds: readonly string[] = ["standard"]): Promise<Bed> {
    await build(["helm"]);
    const bed = new Bed(clusterNamed(name));
    await up(bed.cluster);
    if (!(await hasImage(bed.cluster, envoyReference))) await loadImage(bed.cluster, await envoyImage());
    for (const set of crds) {
      if ((await applyCrds(bed.cluster, set)) !== 0) throw new Error(`the ${set} CRDs could not be applied`);
    }
    return bed;
  }

  async down(): Promise<void> {
    await down(this.cluster);
  }

  kubectl(args: readonly string[], input = ""): Promise<Outcome> {
    return this.run([builtFile("kubernetes", "kubectl"), ...args], input);
  }

  helm(args: readonly string[]): Promise<Outcome> {
    return this.run([builtFile("helm", "helm"), ...args]);
  }

  /**
   * A piece of a guide as a reader would paste it, in the checkout's folder; ends at the first
   * command that fails.
   */
  shell(script: string): Promise<Outcome> {
    const path = [builtFolder("kubernetes"), builtFolder("helm"), process.env["PATH"]].join(":");
    return this.run(["env", `PATH=${path}`, "sh", "-ec", script]);
  }

  async run(command: readonly string[], input = ""): Promise<Outcome> {
    const [program, args] = inside(this.cluster, command);
    return collect(program, args, { input, env: insideEnvironment(this.cluster) });
  }
}

/** Helm without a cluster. */
export async function localHelm(args: readonly string[]): Promise<Outcome> {
  await build(["helm"]);
  return collect(builtFile("helm", "helm"), args, { input: "", env: process.env });
}

/** The output of a command that must succeed. */
export async function ok(outcome: Promise<Outcome>): Promise<string> {
  const { code, out, err } = await outcome;
  if (code !== 0) throw new Error(err || out || `exit code ${code}`);
  return out;
}

async function collect(
  program: string,
  args: readonly string[],
  { input, env }: { readonly input: string; readonly env: NodeJS.ProcessEnv },
): Promise<Outcome> {
  const child = spawn(program, [...args], { env, stdio: ["pipe", "pipe", "pipe"] });
  const ended = new Promise<number>((done, fail) => {
    child.once("error", fail);
    child.once("close", (code) => done(code ?? 1));
  });
  child.stdin.on("error", () => {});
  child.stdin.end(input);
  const [out, err, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { code, out, err };
}
