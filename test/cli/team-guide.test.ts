/** docs/guides/team.md: its YAML is served under the TenantPolicy of docs/guides/tenants.md. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { folder, freePorts, mergeway, ROOT, start } from "./mergeway.ts";
import { backend, get, saying } from "./run/served-folder.ts";

function blocks(guide: string, language: string): readonly string[] {
  const text = readFileSync(join(ROOT, "docs/guides", guide), "utf8");
  return Array.from(text.matchAll(/^```(\w+)\n(.*?)^```$/gms))
    .filter(([, each]) => each === language)
    .map(([, , block = ""]) => block);
}

const [OBJECTS = ""] = blocks("team.md", "yaml");
const POLICY = blocks("tenants.md", "yaml").find((block) => block.includes("kind: TenantPolicy")) ?? "";

const PLATFORM = `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shared, namespace: gateways}
spec:
  gatewayClassName: mergeway
  allowedListeners:
    namespaces: {from: Selector, selector: {matchLabels: {tenant: "yes"}}}
  listeners:
  - {name: guard, port: 80, protocol: HTTP, hostname: guard.example.com}
---
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {tenant: "yes"}}
---
`;

function service(port: number): string {
  return `apiVersion: v1
kind: Service
metadata: {name: shop, namespace: shop}
spec: {ports: [{port: 8080}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: shop, namespace: shop, labels: {kubernetes.io/service-name: shop}}
addressType: IPv4
ports: [{port: ${port}}]
endpoints: [{addresses: [127.0.0.1]}]
`;
}

async function world(objects: string): Promise<string> {
  return folder({
    "platform.yaml": PLATFORM + POLICY,
    "service.yaml": service(await backend(saying("hello from shop"))),
    "shop.yaml": objects,
  });
}

describe("the guide of a team", () => {
  test("leads to a hostname that is served", async () => {
    const [port = 0] = await freePorts(1);
    const path = await world(OBJECTS);
    const offset = ["--port-offset", String(port - 80)];
    const running = start(["run", path, "--address", "127.0.0.1", ...offset]);
    await running.prints(/2 of 2 listeners served/);
    expect(await get(port, "shop.example.com")).toEqual({ status: 200, body: "hello from shop" });
    expect((await get(port, "bank.example.com")).status).toBe(404);
  });

  test("shows the message of a hostname that is not the team's", async () => {
    const path = await world(OBJECTS.replace("hostname: shop.example.com", "hostname: bank.example.com"));
    const { stdout } = await mergeway(["status", path, "-o", "yaml"]);
    const [message = ""] = blocks("team.md", "text");
    expect(message).not.toBe("");
    expect(stdout.replaceAll(/\s+/g, " ")).toContain(message.trim());
  });
});
