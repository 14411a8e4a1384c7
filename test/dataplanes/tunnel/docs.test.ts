/** Reasons and flags that the documents must not forget, and features that must not be claimed. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Gateway } from "../../../src/api/gateway.ts";
import { keyOf } from "../../../src/api/key.ts";
import { desiredTunnel } from "../../../src/controller/tunnels/desired-tunnel.ts";
import { embeddedFeatures } from "../../../src/dataplanes/embedded/features.ts";
import { tunnelFeatures } from "../../../src/dataplanes/tunnel/features.ts";
import { readText } from "../../../src/sources/files/yaml/read-text.ts";
import { ROOT } from "../../cli/mergeway.ts";

test("every reason is in the reference", () => {
  const folders = ["src/dataplanes/tunnel", "src/controller/tunnels"].map((folder) => join(ROOT, folder));
  const source = folders
    .flatMap((folder) =>
      readdirSync(folder, { recursive: true, encoding: "utf8" })
        .filter((file) => file.endsWith(".ts"))
        .map((file) => readFileSync(join(folder, file), "utf8")),
    )
    .join("\n");
  const reasons = new Set(
    Array.from(
      source.matchAll(/(?:reason: |onStuck\([^"]*)"([A-Za-z]+)"/g),
      ([, reason]) => reason as string,
    ),
  );
  expect(reasons.size).toBeGreaterThan(8);
  const page = readFileSync(join(ROOT, "docs/reference/tunnel.md"), "utf8");
  expect([...reasons].filter((reason) => !page.includes(`| \`${reason}\` |`))).toEqual([]);
});

test("what the guide for Kubernetes says to apply is admitted, and chooses a tunnel", () => {
  const guide = readFileSync(join(ROOT, "docs/guides/cloudflare-tunnel-kubernetes.md"), "utf8");
  const blocks = Array.from(guide.matchAll(/^( *)```yaml\n(.*?)^ *```$/gms), ([, indent = "", block = ""]) =>
    block.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
  );
  const { documents, errors } = readText(blocks.join("---\n"), "guide.yaml");
  expect(errors).toEqual([]);
  const resources = new Map(documents.map(({ resource }) => [keyOf(resource), resource]));
  resources.set("Secret/gateways/cloudflare", {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "cloudflare", namespace: "gateways" },
    data: { "api-token": "eA==" },
  });
  const gateway = resources.get("Gateway/gateways/shared") as Gateway;
  expect(desiredTunnel(gateway, (key) => resources.get(key))).toMatchObject({
    type: "api",
    target: { name: "mergeway.gateways.shared" },
    deletes: true,
  });
});

test("nothing is claimed that needs ports, streams or TLS of clients; everything else of the inner data plane is", () => {
  const features = tunnelFeatures(embeddedFeatures);
  const lost = [...embeddedFeatures].filter((feature) => !features.has(feature));
  expect(lost.sort()).toEqual([
    "GatewayFrontendClientCertificateValidation",
    "GatewayFrontendClientCertificateValidationInsecureFallback",
    "GatewayHTTPSListenerDetectMisdirectedRequests",
    "GatewayPort8080",
    "HTTPRouteDestinationPortMatching",
    "TCPRoute",
    "TLSRoute",
    "TLSRouteModeMixed",
    "TLSRouteModeTerminate",
    "UDPRoute",
  ]);
});
