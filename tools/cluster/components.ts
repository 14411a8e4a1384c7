// The programs of a cluster: their settings and command lines, in the order they are started.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Cluster } from "../host/places.ts";
import { findCommand, pluginFolder } from "../host/requirements.ts";
import { builtFile, builtFolder } from "../programs/build.ts";
import { apiServer, nodeAddress, nodeName, podNetwork, serviceNetwork } from "./network.ts";
import { pkiOf } from "./pki.ts";

export const pauseImage = "mergeway.test/pause:v1";

export type ComponentName =
  | "etcd"
  | "containerd"
  | "kube-apiserver"
  | "kube-controller-manager"
  | "kube-scheduler"
  | "kubelet"
  | "kube-proxy"
  | "coredns"
  | "load-balancer";

/** The order in which they are started: each one after what it needs. */
export const componentNames: readonly ComponentName[] = [
  "etcd",
  "containerd",
  "kube-apiserver",
  "kube-controller-manager",
  "kube-scheduler",
  "kubelet",
  "kube-proxy",
  "coredns",
  "load-balancer",
];

export function commandOf(cluster: Cluster, component: ComponentName): readonly string[] {
  const at = (...parts: readonly string[]): string => join(cluster.dir, ...parts);
  const kubernetes = (program: string): string => builtFile("kubernetes", program);
  const pki = pkiOf(cluster);
  const kubeconfig = `--kubeconfig=${cluster.kubeconfig}`;
  switch (component) {
    case "etcd":
      return [
        builtFile("etcd", "etcd"),
        `--data-dir=${at("etcd")}`,
        "--unsafe-no-fsync",
        "--listen-client-urls=http://127.0.0.1:2379",
        "--advertise-client-urls=http://127.0.0.1:2379",
        "--listen-peer-urls=http://127.0.0.1:2380",
      ];
    case "containerd":
      return [builtFile("containerd", "containerd"), "--config", at("containerd.toml")];
    case "kube-apiserver":
      return [
        kubernetes("kube-apiserver"),
        "--etcd-servers=http://127.0.0.1:2379",
        `--tls-cert-file=${pki.servingCertificate}`,
        `--tls-private-key-file=${pki.servingKey}`,
        `--secure-port=${apiServer.port}`,
        `--advertise-address=${nodeAddress}`,
        `--service-account-key-file=${pki.accountPublicKey}`,
        `--service-account-signing-key-file=${pki.accountKey}`,
        "--service-account-issuer=https://kubernetes.default.svc",
        `--token-auth-file=${pki.tokens}`,
        "--authorization-mode=Node,RBAC",
        `--service-cluster-ip-range=${serviceNetwork}`,
        // Without it `kubectl logs` looks the node's name up, and the suite's mirror tests read
        // logs.
        "--kubelet-preferred-address-types=InternalIP",
        "--allow-privileged=true",
        "--max-requests-inflight=2000",
        "--max-mutating-requests-inflight=1000",
        `--audit-policy-file=${at("audit-policy.json")}`,
        `--audit-log-path=${auditLogOf(cluster)}`,
        "--audit-log-maxsize=1000",
        // A test that stops the server means it stopped, not draining.
        "--shutdown-delay-duration=0s",
      ];
    case "kube-controller-manager":
      return [
        kubernetes("kube-controller-manager"),
        kubeconfig,
        `--service-account-private-key-file=${pki.accountKey}`,
        `--root-ca-file=${pki.authority}`,
        "--use-service-account-credentials=true",
        "--leader-elect=false",
        // The only node is there as long as the cluster is. A heartbeat held up, by a test that
        // stops the API server or by a busy machine, would take every pod out of its Services.
        "--node-monitor-grace-period=10m",
      ];
    case "kube-scheduler":
      return [kubernetes("kube-scheduler"), kubeconfig, "--leader-elect=false"];
    case "kubelet":
      return [
        kubernetes("kubelet"),
        `--config=${at("kubelet.json")}`,
        kubeconfig,
        `--root-dir=${at("kubelet")}`,
        `--hostname-override=${nodeName}`,
        `--node-ip=${nodeAddress}`,
      ];
    case "kube-proxy":
      return [
        kubernetes("kube-proxy"),
        `--config=${at("kube-proxy.json")}`,
        `--hostname-override=${nodeName}`,
      ];
    case "coredns":
      return [builtFile("coredns", "coredns"), "-conf", at("Corefile")];
    case "load-balancer":
      return [
        process.execPath,
        fileURLToPath(new URL("main.ts", import.meta.url)),
        "load-balancer",
        "--name",
        cluster.name,
      ];
  }
}

/** Every request of the controller's account, one line of JSON each, without contents. */
export function auditLogOf(cluster: Cluster): string {
  return join(cluster.dir, "log", "audit.log");
}

/** The PATH of the cluster's programs: containerd finds its shim and runc by it. */
export function componentPath(): string {
  return [builtFolder("containerd"), process.env["PATH"] ?? "", "/usr/local/sbin", "/usr/sbin", "/sbin"].join(
    ":",
  );
}

export function writeSettings(cluster: Cluster): void {
  const at = (...parts: readonly string[]): string => join(cluster.dir, ...parts);
  for (const folder of ["etcd", "log/pods", "cni", "containerd", "components"]) {
    mkdirSync(at(folder), { recursive: true });
  }
  writeFileSync(at("containerd.toml"), containerdSettings(cluster));
  writeFileSync(at("cni", "10-pods.conflist"), JSON.stringify(podNetworkSettings(cluster)));
  writeFileSync(at("kubelet.json"), JSON.stringify(kubeletSettings(cluster)));
  writeFileSync(at("audit-policy.json"), JSON.stringify(auditPolicy));
  writeFileSync(at("kube-proxy.json"), JSON.stringify(kubeProxySettings(cluster)));
  // The host's own resolver and search list must not reach pods: there is no way out of the
  // namespace.
  writeFileSync(at("resolv.conf"), `nameserver ${nodeAddress}\n`);
  const dns = `kubernetes cluster.local in-addr.arpa {\n    kubeconfig ${cluster.kubeconfig} mergeway\n    ttl 1\n  }`;
  writeFileSync(at("Corefile"), `.:53 {\n  bind ${nodeAddress}\n  errors\n  ${dns}\n}\n`);
}

/**
 * Which rights the controller uses is read off this log, and how often it writes, beside the peer
 * that bench/peers measures. Nobody else's requests are anybody's business here.
 */
const auditPolicy = {
  apiVersion: "audit.k8s.io/v1",
  kind: "Policy",
  omitStages: ["RequestReceived"],
  rules: [
    {
      level: "Metadata",
      users: [
        "system:serviceaccount:mergeway-system:mergeway",
        "system:serviceaccount:envoy-gateway-system:envoy-gateway",
      ],
    },
    { level: "None" },
  ],
};

function containerdSettings(cluster: Cluster): string {
  const runc = findCommand("runc") ?? "runc";
  return `version = 3
root = "${cluster.dir}/containerd/root"
state = "${cluster.dir}/containerd/state"
[grpc]
  address = "${cluster.containerdSocket}"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "${pauseImage}"
[plugins.'io.containerd.cri.v1.runtime']
  # Machines without CAP_SYS_RESOURCE cannot lower the score, and every sandbox would fail.
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ["${pluginFolder() ?? ""}"]
  conf_dir = "${cluster.dir}/cni"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  BinaryName = "${runc}"
`;
}

/**
 * Point-to-point links, no bridge: on a bridge, answers between pods would bypass the address
 * translation of Services.
 */
function podNetworkSettings(cluster: Cluster): object {
  const ipam = {
    type: "host-local",
    ranges: [[{ subnet: podNetwork }]],
    routes: [{ dst: "0.0.0.0/0" }],
    dataDir: join(cluster.dir, "cni-addresses"),
  };
  return { cniVersion: "1.0.0", name: "pods", plugins: [{ type: "ptp", ipMasq: false, ipam }] };
}

function kubeletSettings(cluster: Cluster): object {
  return {
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    cgroupDriver: "cgroupfs",
    // A version 1 cgroup host is all that many build machines offer.
    failCgroupV1: false,
    failSwapOn: false,
    cgroupsPerQOS: false,
    enforceNodeAllocatable: [],
    containerRuntimeEndpoint: `unix://${cluster.containerdSocket}`,
    authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
    authorization: { mode: "AlwaysAllow" },
    evictionHard: { "memory.available": "1Mi", "nodefs.available": "0%", "imagefs.available": "0%" },
    // Nothing can be pulled again, so nothing may ever be collected.
    imageGCHighThresholdPercent: 100,
    maxPods: 250,
    podLogsDir: join(cluster.dir, "log", "pods"),
    clusterDNS: [nodeAddress],
    clusterDomain: "cluster.local",
    resolvConf: join(cluster.dir, "resolv.conf"),
    // The default of 5 and 10 requests a second makes a suite of a hundred Deployments wait for
    // kubelet.
    kubeAPIQPS: 200,
    kubeAPIBurst: 400,
    // The default backs off for minutes; a crash in a test is looked at within seconds.
    crashLoopBackOff: { maxContainerRestartPeriod: "5s" },
    featureGates: { KubeletCrashLoopBackOffMax: true },
  };
}

function kubeProxySettings(cluster: Cluster): object {
  return {
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    mode: "nftables",
    clientConnection: { kubeconfig: cluster.kubeconfig },
    clusterCIDR: podNetwork,
    // A test that has seen an endpoint become ready expects its traffic to arrive; the default
    // gathers for a second.
    nftables: { minSyncPeriod: "50ms" },
    // Tuning the machine's connection table is not a test's business.
    conntrack: { maxPerCore: 0, min: 0, tcpCloseWaitTimeout: "0s", tcpEstablishedTimeout: "0s" },
  };
}
