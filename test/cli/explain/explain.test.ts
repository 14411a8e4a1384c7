import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { authority, issue, selfSigned } from "../../dataplanes/support/certificates.ts";
import { folder, mergeway } from "../mergeway.ts";

const EXAMPLE = ["-f", "examples/two-teams"];

async function explained(...args: string[]): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await mergeway(["explain", ...args, "--json"]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout) as Record<string, unknown>;
}

describe("mergeway explain", () => {
  test("names listener, rule and backend, and every eliminated candidate", async () => {
    expect(await explained("https://coffee.example.com:8443/", ...EXAMPLE)).toMatchObject({
      outcome: "forward",
      listener: { kind: "ListenerSet", namespace: "team-coffee", name: "coffee", section: "https" },
      route: { kind: "HTTPRoute", namespace: "team-coffee", name: "coffee", rule: 0 },
      backends: [
        {
          namespace: "team-coffee",
          name: "coffee",
          port: 80,
          share: 1,
          endpoints: [{ address: "127.0.0.1", port: 9481 }],
        },
      ],
      eliminated: [
        {
          rule: "hostname",
          listener: { kind: "Gateway", namespace: "platform", name: "shared", section: "https" },
        },
        { rule: "hostname", listener: { namespace: "team-tea" } },
        {
          rule: "conflict",
          listener: { namespace: "team-zest", section: "https" },
          reason: expect.stringContaining("held by ListenerSet team-coffee/coffee"),
        },
      ],
    });
  });

  test("names the criterion that decided between two rules that both match", async () => {
    const route = (name: string, created: string, hostname: string | undefined, path: object): string =>
      JSON.stringify({
        apiVersion: "gateway.networking.k8s.io/v1",
        kind: "HTTPRoute",
        metadata: { name, namespace: "team", creationTimestamp: created },
        spec: {
          parentRefs: [{ name: "shared" }],
          ...(hostname === undefined ? {} : { hostnames: [hostname] }),
          rules: [{ matches: [{ path }], backendRefs: [{ name: "web", port: 80 }] }],
        },
      });
    const gateway = JSON.stringify({
      apiVersion: "gateway.networking.k8s.io/v1",
      kind: "Gateway",
      metadata: { name: "shared", namespace: "team" },
      spec: {
        gatewayClassName: "mergeway",
        listeners: [{ name: "http", port: 80, protocol: "HTTP", hostname: "*.example.com" }],
      },
    });
    const [older, younger] = ["2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"];
    const file = folder({
      "all.yaml": [
        gateway,
        route("prefix", older, "a.example.com", { type: "PathPrefix", value: "/api/1" }),
        route("expression", younger, "a.example.com", { type: "RegularExpression", value: "/a.*" }),
        route("any-host", older, undefined, { type: "PathPrefix", value: "/wide" }),
        route("named-host", younger, "*.example.com", { type: "PathPrefix", value: "/wide" }),
      ].join("\n---\n"),
    });
    const whyNot = async (url: string, loser: string): Promise<unknown> => {
      const { eliminated } = await explained(url, "-f", file);
      const lost = eliminated as readonly {
        readonly route?: { readonly name: string };
        readonly reason: string;
      }[];
      return lost.find((each) => each.route?.name === loser)?.reason;
    };
    expect(await whyNot("http://a.example.com/api/1", "prefix")).toBe(
      "lower precedence than HTTPRoute team/expression rule 0, which matches the path by a regular expression, which goes before a prefix",
    );
    expect(await whyNot("http://b.example.com/wide", "any-host")).toBe(
      "lower precedence than HTTPRoute team/named-host rule 0, which has the more specific hostname in its route",
    );
  });

  test.each([
    [["https://tea.example.com:8443/", "--sni", "coffee.example.com"], { outcome: "respond", status: 421 }],
    [["https://nobody.example.com:8443/"], { outcome: "refuse" }],
    [
      ["https://platform.example.com:8443/", "-H", "Host: elsewhere.example.org"],
      { outcome: "respond", status: 404 },
    ],
    [
      ["http://anything.example.org:8080/"],
      { outcome: "forward", listener: { kind: "Gateway", section: "http" } },
    ],
    [
      ["http://TEA.example.com:8080/a/../b?c", "-X", "POST"],
      { outcome: "forward", listener: { namespace: "team-tea" } },
    ],
    [["http://coffee.example.com/"], { outcome: "refuse" }],
    [["tcp://coffee.example.com:8080"], { outcome: "refuse" }],
  ])("explains %j", async (args, expected) => {
    expect(await explained(...args, ...EXAMPLE)).toMatchObject(expected);
  });

  test("prints text without --json", async () => {
    const { stdout } = await mergeway(["explain", "https://tea.example.com:8443/", ...EXAMPLE]);
    expect(stdout).toMatch(/^https:\/\/tea\.example\.com:8443\/ {2}goes to Service team-tea\/tea:80\n/);
    expect(stdout).toMatch(/\n {2}sni +the client asks for tea\.example\.com\n/);
    expect(stdout).toMatch(/\nWhy not the others\n/);
  });

  test("lists routes that no listener accepts", async () => {
    const path = folder({ "all.yaml": STRAY });
    expect(await explained("http://a.example.com/", "-f", path)).toMatchObject({
      outcome: "respond",
      status: 404,
      eliminated: [
        { rule: "not-attached", route: { kind: "HTTPRoute", namespace: "team-a", name: "stray" } },
      ],
    });
    const other = await explained("http://b.example.com/", "-f", path);
    expect(other["eliminated"]).toEqual([]);
  });

  test("verifies a client certificate against what one listener asks for", async () => {
    const ca = authority();
    const server = selfSigned(["a.example.com"]);
    const text = withClientValidation(ca.cert, server).replace(/\n\s*tls: \{frontend.*/, "");
    const policy = `
apiVersion: mergeway.dev/v1alpha1
kind: ClientPolicy
metadata: {name: own, namespace: infra}
spec:
  targetRefs: [{kind: Gateway, name: shared, sectionName: https}]
  overrides:
    tls:
      clientCertificates:
        caCertificateRefs: [{name: clients}]
        subjectAltNames: [{type: Hostname, hostname: alice.example}]
`;
    const path = folder({ "all.yaml": `${text}---${policy}` });
    writeFileSync(join(path, "alice.pem"), issue(ca, ["alice.example"]).cert);
    writeFileSync(join(path, "bob.pem"), issue(ca, ["bob.example"]).cert);
    const asked = (...flags: string[]): Promise<unknown> =>
      explained("https://a.example.com/", "-f", join(path, "all.yaml"), ...flags);
    expect(await asked()).toMatchObject({ outcome: "refuse" });
    expect(await asked("--client-cert", join(path, "bob.pem"))).toMatchObject({ outcome: "refuse" });
    expect(await asked("--client-cert", join(path, "alice.pem"))).toMatchObject({
      outcome: "respond",
      status: 404,
      policy: {
        settings: [
          {
            field: "clientCertificates",
            section: "overrides",
            policy: { kind: "ClientPolicy", namespace: "infra", name: "own" },
            value: "AllowValidOnly, by ConfigMap clients; for DNS:alice.example",
          },
        ],
      },
    });
  });

  test("verifies a client certificate against the port's authorities", async () => {
    const ca = authority();
    const server = selfSigned(["a.example.com"]);
    const path = folder({ "all.yaml": withClientValidation(ca.cert, server) });
    writeFileSync(join(path, "good.pem"), issue(ca, ["client"]).cert);
    writeFileSync(join(path, "bad.pem"), selfSigned(["client"]).cert);
    const ask = (...flags: string[]): Promise<unknown> =>
      explained("https://a.example.com/", "-f", join(path, "all.yaml"), ...flags);
    expect(await ask()).toMatchObject({ outcome: "refuse" });
    expect(await ask("--client-cert")).toMatchObject({ outcome: "respond", status: 404 });
    expect(await ask("--client-cert", join(path, "good.pem"))).toMatchObject({
      outcome: "respond",
      status: 404,
    });
    expect(await ask("--client-cert", join(path, "bad.pem"))).toMatchObject({ outcome: "refuse" });
  });

  test.each([
    [["coffee.example.com"], /"coffee\.example\.com" is not a URL that can be asked about/],
    [["ftp://a/"], /is not a URL/],
    [["tcp://a.example.com"], /has no port/],
    [["http://a b/"], /"a b" is not a host/],
    [["http://a/%00"], /invalid escape/],
    [["http://a/", "-H", "nothing"], /"nothing" is not a header/],
    [["http://a/", "--client-cert", "/nowhere.pem"], /client certificate \/nowhere\.pem cannot be used/],
  ])("rejects %j with a helpful message", async (args, message) => {
    const { code, stderr } = await mergeway(["explain", ...args, ...EXAMPLE]);
    expect(code).toBe(2);
    expect(stderr).toMatch(message);
    expect(stderr.trimEnd().split("\n").length).toBeGreaterThan(1);
  });
});

const STRAY = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shared, namespace: infra}
spec: {gatewayClassName: mergeway, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: stray, namespace: team-a}
spec: {parentRefs: [{name: shared, namespace: infra}], hostnames: [a.example.com], rules: [{}]}
`;

function withClientValidation(
  ca: string,
  { cert, key }: { readonly cert: string; readonly key: string },
): string {
  const base64 = (text: string): string => Buffer.from(text).toString("base64");
  return `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: shared, namespace: infra}
spec:
  gatewayClassName: mergeway
  tls: {frontend: {default: {validation: {caCertificateRefs: [{group: "", kind: ConfigMap, name: clients}]}}}}
  listeners:
  - {name: https, port: 443, protocol: HTTPS, hostname: a.example.com, tls: {certificateRefs: [{name: cert}]}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: clients, namespace: infra}
data: {ca.crt: ${JSON.stringify(ca)}}
---
apiVersion: v1
kind: Secret
metadata: {name: cert, namespace: infra}
type: kubernetes.io/tls
data: {tls.crt: ${base64(cert)}, tls.key: ${base64(key)}}
`;
}
