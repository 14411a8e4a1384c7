#!/usr/bin/env node
// npm run cluster -- VERB: a real Kubernetes cluster for tests. docs/reference/test-bed.md tells
// the whole story.

import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { ClusterFailure, failureOf } from "../host/failure.ts";
import { type Cluster, clusterNamed } from "../host/places.ts";
import { requireRoot } from "../host/requirements.ts";
import { envoyImage } from "../images/envoy-image.ts";
import { type ImageSpec, writeImage } from "../images/image.ts";
import { productImage } from "../images/product-image.ts";
import { entryOf } from "../images/tar.ts";
import { build, builtFile } from "../programs/build.ts";
import { boot, pause, resume, start, stop } from "./boot.ts";
import { down, existingClusters, loadImage, ownCommand, runInside, status, up } from "./cluster.ts";
import { type ComponentName, componentNames } from "./components.ts";
import { applyCrds, joinFlags, loadSuiteImages, runConformance } from "./conformance.ts";
import { runLoadBalancer } from "./load-balancer.ts";
import { runningNamespace } from "./namespace.ts";

const help = `A real one-node Kubernetes cluster in namespaces of its own.

npm run cluster -- VERB [--name NAME] …

  build [PART…]            build all programs, or the named parts
  up                       boot the cluster; nothing happens when it is up
  down [--all --yes]       end it and remove every trace of it; --all: everybody's on this machine
  status [--all]           what runs, and where its logs are
  kubectl ARGS…            kubectl against the cluster
  in COMMAND…              any command inside the cluster's network (helm and kubectl are on its PATH)
  crds [SET]               install Gateway API CRDs: standard (default), experimental or xlistenerset
  load-images              load the conformance suite's own images
  image mergeway           make the product's image from dist and load it
        [--ref REF] [--output FILE]   with --output write an OCI archive instead
  image envoy              make Envoy's image from its program and load it
        [--ref REF] [--output FILE]
  image REF SRC:DST…       make an image of files and load it
        [--entrypoint JSON] [--user UID] [--env K=V]… [--workdir DIR] [--output FILE]
  conformance [FLAGS…]     run the unmodified conformance suite; flags go to the suite
        [--log FILE] [--verbose]
  stop|start|pause|resume COMPONENT     for fault tests; components: ${componentNames.join(", ")}

NAME comes from --name, directly behind the verb, or from MERGEWAY_CLUSTER, or is "default".

Examples
  npm run cluster -- up
  npm run cluster -- kubectl get nodes
  npm run cluster -- in curl -s http://172.30.16.1/
  npm run cluster -- image mergeway --ref mergeway:dev
  npm run cluster -- conformance --gateway-class=mergeway --conformance-profiles=GATEWAY-HTTP \\
      --supported-features=ListenerSet --report-output=conformance/report.yaml
  npm run cluster -- up --name second
  npm run cluster -- down --name second
`;

const root = resolve(fileURLToPath(new URL("../..", import.meta.url)));

interface Call {
  readonly cluster: Cluster;
  readonly args: readonly string[];
}

type Verb = (call: Call) => number | undefined | Promise<number | undefined>;

const verbs: Readonly<Record<string, Verb>> = {
  build: async ({ args }) => {
    await build(args.length === 0 ? undefined : args);
    console.log("everything is built");
    return 0;
  },
  up: async ({ cluster, args }) => {
    takeNothing(args);
    await up(cluster);
    return 0;
  },
  down: async ({ cluster, args }) => {
    const agreed = args.includes("--yes");
    const chosen = chosenClusters(
      cluster,
      args.filter((arg) => arg !== "--yes"),
    );
    if (args.includes("--all") && !agreed) {
      throw new ClusterFailure(allClustersWarning(chosen));
    }
    for (const each of chosen) {
      await down(each);
    }
    return 0;
  },
  status: ({ cluster, args }) => {
    const chosen = chosenClusters(cluster, args);
    console.log(chosen.length === 0 ? "no cluster is there" : chosen.map((each) => status(each)).join("\n"));
    return chosen.every((each) => runningNamespace(each) !== undefined) ? 0 : 1;
  },
  kubectl: ({ cluster, args }) => runInside(cluster, [builtFile("kubernetes", "kubectl"), ...args]),
  in: ({ cluster, args }) => {
    if (args.length === 0) {
      throw new ClusterFailure("say what to run: npm run cluster -- in curl -s http://172.30.16.1/");
    }
    process.env["PATH"] = [builtFile("kubernetes", ""), builtFile("helm", ""), process.env["PATH"]].join(":");
    return runInside(cluster, args);
  },
  crds: ({ cluster, args }) => applyCrds(cluster, args[0] ?? "standard"),
  "load-images": async ({ cluster, args }) => {
    takeNothing(args);
    await loadSuiteImages(cluster);
    return 0;
  },
  image: async ({ cluster, args }) => {
    await image(cluster, args);
    return 0;
  },
  conformance: ({ cluster, args }) => conformance(cluster, args),
  stop: (call) => component("stop", call),
  start: (call) => component("start", call),
  pause: (call) => component("pause", call),
  resume: (call) => component("resume", call),
};

/** Steps of the above that run inside the namespaces; not for people. */
const insideVerbs: Readonly<Record<string, Verb>> = {
  boot: async ({ cluster }) => {
    await boot(cluster);
    return 0;
  },
  "load-balancer": ({ cluster }) => runLoadBalancer(cluster),
  "component-stop": async ({ cluster, args }) => {
    await stop(cluster, componentNamed(args[0]));
    return 0;
  },
  "component-start": ({ cluster, args }) => {
    start(cluster, componentNamed(args[0]));
    return 0;
  },
  "component-pause": ({ cluster, args }) => {
    pause(cluster, componentNamed(args[0]));
    return 0;
  },
  "component-resume": ({ cluster, args }) => {
    resume(cluster, componentNamed(args[0]));
    return 0;
  },
};

function component(action: string, { cluster, args }: Call): Promise<number> {
  const name = componentNamed(args[0]);
  return runInside(cluster, ownCommand(`component-${action}`, "--name", cluster.name, name));
}

function componentNamed(name: string | undefined): ComponentName {
  const found = componentNames.find((each) => each === name);
  if (found === undefined) {
    throw new ClusterFailure(`say which component: ${componentNames.join(", ")}`);
  }
  return found;
}

async function image(cluster: Cluster, args: readonly string[]): Promise<void> {
  const { options, rest } = parseImage(args);
  const [what, ...files] = rest;
  if (what === undefined) {
    throw new ClusterFailure("say which image: image mergeway, image envoy, or image REF SRC:DST…");
  }
  const spec =
    files.length === 0 && what === "envoy"
      ? await envoyImage(options.ref)
      : files.length === 0 && what === "mergeway"
        ? await productImage(root, options.ref ?? "mergeway:dev")
        : imageOfFiles(what, files, options);
  const { output } = options;
  if (output === undefined) {
    requireRoot();
    await loadImage(cluster, spec);
    console.log(`loaded ${spec.reference} into cluster ${cluster.name}`);
  } else {
    await writeImage({ ...spec, compress: true }, resolve(output));
    console.log(`wrote ${spec.reference} to ${output}`);
  }
}

function imageOfFiles(reference: string, files: readonly string[], options: ImageOptions): ImageSpec {
  const entries = files.flatMap((pair) => {
    const [source, path, more] = pair.split(":");
    if (source === undefined || path === undefined || !path.startsWith("/") || more !== undefined) {
      throw new ClusterFailure(`"${pair}" is not SOURCE:/PATH/IN/IMAGE`);
    }
    return entryOf(resolve(source), path);
  });
  const first = entries.find((entry) => entry.kind === "file");
  if (first === undefined) {
    throw new ClusterFailure("an image needs files: image REF SRC:DST…");
  }
  const { entrypoint, user, workdir, env } = options;
  return {
    reference,
    layers: [[{ kind: "directory", path: "/tmp", mode: 0o1777 }, ...entries]],
    config: {
      entrypoint: entrypoint === undefined ? [first.path] : (JSON.parse(entrypoint) as readonly string[]),
      ...(user === undefined ? {} : { user }),
      ...(workdir === undefined ? {} : { workdir }),
      ...(env === undefined ? {} : { env }),
    },
  };
}

function conformance(cluster: Cluster, args: readonly string[]): Promise<number> {
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    readonly version: string;
  };
  const flags = joinFlags(args.filter((arg) => arg !== "--verbose" && arg !== "--"));
  const log = flags.find((flag) => flag.startsWith("--log="))?.slice("--log=".length);
  return runConformance(cluster, {
    flags: flags.filter((flag) => !flag.startsWith("--log=")),
    implementation: { version: `v${manifest.version}` },
    log: log ?? join(cluster.dir, "log", "conformance.log"),
    verbose: args.includes("--verbose"),
  });
}

interface ImageOptions {
  readonly ref?: string | undefined;
  readonly output?: string | undefined;
  readonly entrypoint?: string | undefined;
  readonly user?: string | undefined;
  readonly env?: string[] | undefined;
  readonly workdir?: string | undefined;
}

function parseImage(args: readonly string[]): {
  readonly options: ImageOptions;
  readonly rest: readonly string[];
} {
  const text = { type: "string" } as const;
  const known = { ref: text, output: text, entrypoint: text, user: text, workdir: text } as const;
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { ...known, env: { type: "string", multiple: true } },
    });
    return { options: values, rest: positionals };
  } catch (error) {
    throw new ClusterFailure(`${failureOf(error)}; try --help`, { cause: error });
  }
}

/** The machine may be shared, and a cluster does not say whose it is. */
function allClustersWarning(chosen: readonly Cluster[]): string {
  const names = chosen.map((each) => each.name).join(", ") || "none";
  return `--all ends the clusters of everybody on this machine: ${names}. End your own with --name, or add --yes.`;
}

function requireAll(args: readonly string[]): boolean {
  takeNothing(args.filter((arg) => arg !== "--all"));
  return args.includes("--all");
}

function chosenClusters(cluster: Cluster, args: readonly string[]): readonly Cluster[] {
  return requireAll(args) ? existingClusters() : [cluster];
}

function takeNothing(args: readonly string[]): void {
  if (args.length > 0) {
    throw new ClusterFailure(`"${args[0]}" is not understood here; try --help`);
  }
}

async function main([verbName, ...args]: readonly string[]): Promise<number> {
  if (verbName === undefined || verbName === "--help" || verbName === "-h" || verbName === "help") {
    console.log(help);
    return verbName === undefined ? 2 : 0;
  }
  const verb = verbs[verbName] ?? insideVerbs[verbName];
  if (verb === undefined) {
    throw new ClusterFailure(`there is no verb "${verbName}"; there are ${Object.keys(verbs).join(", ")}`);
  }
  const named = args[0] === "--name" ? args[1] : undefined;
  if (args[0] === "--name" && named === undefined) {
    throw new ClusterFailure("--name needs a name, as in --name review-7");
  }
  const rest = named === undefined ? args : args.slice(2);
  if (rest[0] === "--help" && verbName !== "kubectl" && verbName !== "in") {
    console.log(help);
    return 0;
  }
  return (await verb({ cluster: clusterNamed(named), args: rest })) ?? 0;
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof ClusterFailure)) {
    throw error;
  }
  console.error(error.message);
  process.exitCode = 1;
}
