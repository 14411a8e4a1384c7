/** No output contains a value of a Secret, whatever is wrong with the Secret. */
import { expect, test } from "vitest";
import { folder, freePorts, mergeway, start } from "./mergeway.ts";

const VALUE = "hunter2";
const base64 = (text: string): string => Buffer.from(text).toString("base64");

function manifests(port: number): Readonly<Record<string, string>> {
  const pem = (what: string): string => `-----BEGIN ${what}-----\n${VALUE}\n-----END ${what}-----\n`;
  const secret = (name: string, data: string): string => `---
apiVersion: v1
kind: Secret
metadata:
  name: ${name}
  namespace: infra
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: '{"stringData":{"password":"${VALUE}"}}'
type: kubernetes.io/tls
${data}
`;
  const data = (certificate: string, key: string): string =>
    `data: { tls.crt: ${base64(certificate)}, tls.key: ${base64(key)} }`;
  return {
    "gateway.yaml": `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: shared, namespace: infra }
spec:
  gatewayClassName: mergeway
  listeners:
${["certificate", "key", "neither"]
  .map(
    (name) => `    - name: ${name}
      port: ${port}
      protocol: HTTPS
      hostname: ${name}.example
      tls: { certificateRefs: [{ name: ${name} }] }
`,
  )
  .join("")}`,
    "secrets.yaml":
      secret("certificate", data(pem("CERTIFICATE"), pem("PRIVATE KEY"))) +
      secret("key", data(VALUE, pem("EC PRIVATE KEY"))) +
      secret("neither", `stringData: { tls.crt: ${VALUE}, tls.key: ${VALUE} }`),
    "broken.yaml": secret("broken", `data: { tls.crt: "", tls.key: "${VALUE}" }`),
    "number.yaml": secret("number", "stringData: { tls.crt: a, tls.key: 87328732 }"),
  };
}

function expectNone(text: string, what: string): void {
  for (const value of [VALUE, base64(VALUE), "87328732"]) expect(text, what).not.toContain(value);
}

test("status, check and explain report broken Secrets without their values", async () => {
  const path = folder(manifests(443));
  for (const args of [
    ["status", path],
    ["status", path, "-o", "wide"],
    ["status", path, "-o", "json"],
    ["status", path, "-o", "yaml"],
    ["check", path],
    ["check", path, "--format", "json"],
    ["check", path, "--format", "sarif"],
    ["check", path, "--format", "github"],
    ["explain", "https://key.example/", "-f", path],
    ["explain", "https://key.example/", "-f", path, "--json"],
  ]) {
    const { stdout, stderr } = await mergeway(args);
    expect(stdout + stderr, args.join(" ")).toContain("broken.yaml");
    expectNone(stdout + stderr, args.join(" "));
  }
});

test("run logs broken Secrets without their values", async () => {
  const [port = 0] = await freePorts(1);
  const path = folder(manifests(port));
  for (const format of ["pretty", "json"]) {
    const flags = ["--address", "127.0.0.1", "--admin-address", "off", "--workers", "0"];
    const running = start(["run", path, ...flags, "--log-format", format]);
    await running.prints(/listeners served/);
    await running.prints(/broken\.yaml/);
    expectNone(running.stdout() + running.stderr(), format);
    running.kill("SIGTERM");
    await running.exited;
  }
});
