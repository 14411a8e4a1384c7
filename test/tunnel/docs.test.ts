/** Reasons and flags that the documents must not forget, and features that must not be claimed. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { embeddedFeatures } from "../../src/dataplanes/embedded/features.ts";
import { tunnelFeatures } from "../../src/dataplanes/tunnel/features.ts";
import { ROOT } from "../cli/mergeway.ts";

test("every reason is in the reference", () => {
  const folder = join(ROOT, "src/dataplanes/tunnel");
  const source = readdirSync(folder)
    .map((file) => readFileSync(join(folder, file), "utf8"))
    .join("\n");
  const reasons = new Set(
    Array.from(source.matchAll(/reason: "([A-Za-z]+)"/g), ([, reason]) => reason as string),
  );
  expect(reasons.size).toBeGreaterThan(8);
  const page = readFileSync(join(ROOT, "docs/reference/tunnel.md"), "utf8");
  expect([...reasons].filter((reason) => !page.includes(`| \`${reason}\` |`))).toEqual([]);
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
