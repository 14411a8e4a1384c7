/** Commands that read a cluster, tested without one; test/e2e/cli.e2e.ts tests them with one. */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { folder, freePorts, mergeway, ROOT } from "../mergeway.ts";

const COMMANDS = [
  ["status", ["status"], ["examples/two-teams"]],
  ["check", ["check"], ["examples/two-teams"]],
  ["explain", ["explain", "http://a.example.com/"], ["-f", "examples/two-teams"]],
] as const;

function kubeconfig(server: string): string {
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "c", cluster: { server, "insecure-skip-tls-verify": true } }],
    users: [{ name: "u", user: { token: "t" } }],
    contexts: [{ name: "here", context: { cluster: "c", user: "u" } }],
    "current-context": "here",
  };
  return join(folder({ config: JSON.stringify(config) }), "config");
}

async function answering(status: number, message: string): Promise<string> {
  const file = join(ROOT, "examples/two-teams/platform-certificate.yaml");
  const { data } = parse(readFileSync(file, "utf8")) as { data: Record<"tls.crt" | "tls.key", string> };
  const [cert, key] = [data["tls.crt"], data["tls.key"]].map((text) => Buffer.from(text, "base64"));
  const server = createServer({ cert, key }, (_, answer) => {
    answer.writeHead(status, { "content-type": "application/json" });
    answer.end(JSON.stringify({ kind: "Status", code: status, message }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe.each(COMMANDS)("mergeway %s", (_name, command, manifests) => {
  test("fails without manifests and kubeconfig", async () => {
    const env = { HOME: folder({}), KUBECONFIG: "", KUBERNETES_SERVICE_HOST: "" };
    const { code, stdout, stderr } = await mergeway(command, { env });
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toContain("neither manifests nor a kubeconfig");
    expect(stderr).toContain("--kubeconfig");
  });

  test.each([["--context"], ["--kubeconfig"], ["--namespace"], ["-n"]])(
    "refuses manifests together with %s",
    async (flag) => {
      const { code, stdout, stderr } = await mergeway([...command, ...manifests, flag, "x"]);
      expect([code, stdout]).toEqual([2, ""]);
      expect(stderr).toMatch(/--\w+ is about a cluster, examples\/two-teams about files/);
    },
  );

  test("refuses a context that the kubeconfig does not have", async () => {
    const args = ["--kubeconfig", kubeconfig("https://127.0.0.1:1"), "--context", "there"];
    const { code, stderr } = await mergeway([...command, ...args]);
    expect(code).toBe(2);
    expect(stderr).toContain("the kubeconfig has no context there");
  });

  test("names the API server that cannot be reached", async () => {
    const [port] = await freePorts(1);
    const args = ["--kubeconfig", kubeconfig(`https://127.0.0.1:${port}`), "--context", "here"];
    const { code, stdout, stderr } = await mergeway([...command, ...args]);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toContain(`the API server at 127.0.0.1:${port} cannot be reached`);
    expect(stderr).toContain("ECONNREFUSED");
  });

  test("reports credentials that the API server does not accept", async () => {
    const server = await answering(401, "Unauthorized");
    const { code, stderr } = await mergeway([...command, "--kubeconfig", kubeconfig(server)]);
    expect(code).toBe(2);
    expect(stderr).toContain("does not accept the credentials");
  });

  test("uses the kubeconfig of $KUBECONFIG, like kubectl", async () => {
    const [port] = await freePorts(1);
    const env = { KUBECONFIG: kubeconfig(`https://127.0.0.1:${port}`) };
    const { code, stderr } = await mergeway(command, { env });
    expect(code).toBe(2);
    expect(stderr).toContain(`the API server at 127.0.0.1:${port} cannot be reached`);
  });
});

test.each(["sarif", "github"])("check refuses --format %s for a cluster", async (format) => {
  const args = ["check", "--kubeconfig", kubeconfig("https://127.0.0.1:1"), "--format", format];
  const { code, stderr } = await mergeway(args);
  expect(code).toBe(2);
  expect(stderr).toContain(`--format ${format} tells places in files`);
});
