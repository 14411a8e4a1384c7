// One authority, one serving certificate, one admin token: made anew for each cluster, gone with
// it.

import { generateKeyPairSync, randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Cluster } from "../host/places.ts";
import { output } from "../host/processes.ts";
import { apiServer, firstServiceAddress, nodeAddress } from "./network.ts";

export interface Pki {
  readonly authority: string;
  readonly servingCertificate: string;
  readonly servingKey: string;
  readonly accountKey: string;
  readonly accountPublicKey: string;
  readonly tokens: string;
}

export function pkiOf(cluster: Cluster): Pki {
  const at = (name: string): string => join(cluster.dir, "pki", name);
  return {
    authority: at("ca.crt"),
    servingCertificate: at("api.crt"),
    servingKey: at("api.key"),
    accountKey: at("accounts.key"),
    accountPublicKey: at("accounts.pub"),
    tokens: at("tokens.csv"),
  };
}

export async function createPki(cluster: Cluster): Promise<void> {
  const pki = pkiOf(cluster);
  const dir = join(cluster.dir, "pki");
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const authorityKey = join(dir, "ca.key");
  const request = [
    "req",
    "-x509",
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:prime256v1",
    "-nodes",
    "-days",
    "365",
  ];
  const asAuthority = ["-subj", "/CN=mergeway-cluster", "-addext", "keyUsage=critical,keyCertSign,cRLSign"];
  await output("openssl", [...request, ...asAuthority, "-keyout", authorityKey, "-out", pki.authority]);
  const service = [
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
  ];
  const addresses = [apiServer.host, nodeAddress, firstServiceAddress];
  const names = [
    ...[...service, "localhost"].map((name) => `DNS:${name}`),
    ...addresses.map((ip) => `IP:${ip}`),
  ];
  const asServer = [
    ...["-subj", "/CN=kube-apiserver", "-CA", pki.authority, "-CAkey", authorityKey],
    ...["-addext", `subjectAltName=${names.join(",")}`, "-addext", "extendedKeyUsage=serverAuth"],
    ...["-addext", "basicConstraints=critical,CA:FALSE"],
  ];
  await output("openssl", [
    ...request,
    ...asServer,
    "-keyout",
    pki.servingKey,
    "-out",
    pki.servingCertificate,
  ]);

  const account = generateKeyPairSync("rsa", { modulusLength: 2048 });
  writeFileSync(pki.accountKey, account.privateKey.export({ type: "pkcs1", format: "pem" }), { mode: 0o600 });
  writeFileSync(pki.accountPublicKey, account.publicKey.export({ type: "spki", format: "pem" }));

  const token = randomBytes(24).toString("hex");
  writeFileSync(pki.tokens, `${token},admin,admin,system:masters\n`, { mode: 0o600 });
  writeFileSync(cluster.kubeconfig, JSON.stringify(kubeconfig(pki.authority, token), undefined, 2), {
    mode: 0o600,
  });
}

function kubeconfig(authority: string, token: string): object {
  const server = `https://${apiServer.host}:${apiServer.port}`;
  return {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "mergeway", cluster: { server, "certificate-authority": authority } }],
    users: [{ name: "admin", user: { token } }],
    contexts: [{ name: "mergeway", context: { cluster: "mergeway", user: "admin" } }],
    "current-context": "mergeway",
  };
}
