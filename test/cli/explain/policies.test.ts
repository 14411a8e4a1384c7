import { describe, expect, test } from "vitest";
import { folder, mergeway } from "../mergeway.ts";

const EXAMPLE = ["-f", "examples/policies"];

interface Explained {
  readonly outcome: string;
  readonly status?: number;
  readonly policy: {
    readonly settings: readonly {
      readonly field: string;
      readonly section: string;
      readonly policy: { readonly name: string };
      readonly checks?: readonly { readonly result: string }[];
    }[];
    readonly overridden: readonly unknown[];
  };
  readonly steps: readonly { readonly at: string; readonly text: string }[];
}

async function explained(...args: string[]): Promise<Explained> {
  const { code, stdout, stderr } = await mergeway(["explain", ...args, "--json"]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout) as Explained;
}

function settings({ policy }: Explained): readonly string[] {
  return policy.settings.map(
    ({ field, section, policy: { name }, checks }) =>
      `${field}: ${name} ${section} ${checks?.map(({ result }) => result).join(" ") ?? ""}`,
  );
}

describe("the effective policy of a request", () => {
  test("names the policy and section of each setting, and the defaults that gave way", async () => {
    const found = await explained("http://coffee.example.com:8080/stock", ...EXAMPLE);
    expect(settings(found)).toEqual([
      "clientAddress: behind-load-balancer overrides ",
      "clientAddresses: base overrides depends",
      "clientAddresses: stock overrides depends",
      "rateLimits: calm defaults counts",
    ]);
    expect(found.policy.overridden).toEqual([
      {
        policy: { kind: "TrafficPolicy", namespace: "platform", name: "base" },
        section: "defaults",
        target: { kind: "Gateway", namespace: "platform", name: "shared" },
        field: "rateLimits",
        by: {
          policy: { kind: "TrafficPolicy", namespace: "team-coffee", name: "calm" },
          section: "defaults",
          target: { kind: "ListenerSet", namespace: "team-coffee", name: "coffee" },
        },
      },
    ]);
    expect(found.outcome).toBe("forward");
  });

  test("says what is compressed, and which default has given way", async () => {
    const policy = (name: string, namespace: string, rest: string): string => `---
apiVersion: mergeway.dev/v1alpha1
kind: TrafficPolicy
metadata: {name: ${name}, namespace: ${namespace}}
spec: {${rest}}
`;
    const policies = [
      policy("set", "team-tea", "targetRefs: [{kind: ListenerSet, name: tea}], defaults: {compression: {}}"),
      policy(
        "own",
        "team-tea",
        "targetRefs: [{kind: HTTPRoute, name: tea}], " +
          "defaults: {compression: {algorithms: [zstd, gzip], minBytes: 5, contentTypes: [text/html]}}",
      ),
    ];
    const of = async (...written: string[]): Promise<string> => {
      const files = folder({ "compression.yaml": written.join("") });
      return (await mergeway(["explain", "http://tea.example.com:8080/", ...EXAMPLE, "-f", files])).stdout;
    };
    expect(await of(policies[0] ?? "")).toMatch(
      /compression +defaults of TrafficPolicy team-tea\/set at ListenerSet team-tea\/tea +brotli, gzip, zstd; from 1024 bytes; the usual types\n/,
    );
    const both = await of(...policies);
    expect(both).toMatch(
      /compression +defaults of TrafficPolicy team-tea\/own at HTTPRoute team-tea\/tea +zstd, gzip; from 5 bytes; text\/html\n/,
    );
    expect(both).toMatch(
      /compression +defaults of .*\/set .* gave way to defaults of TrafficPolicy team-tea\/own/,
    );
  });

  test("says what becomes part of the rule, and that the route's own word comes first", async () => {
    const policy = `
apiVersion: mergeway.dev/v1alpha1
kind: TrafficPolicy
metadata: {name: times, namespace: team-tea}
spec:
  targetRefs: [{kind: ListenerSet, name: tea}]
  overrides: {requestBody: {maxSize: 10Mi}}
  defaults: {timeouts: {request: 30s, idle: 90s}}
`;
    const { stdout } = await mergeway([
      "explain",
      "http://tea.example.com:8080/",
      ...EXAMPLE,
      "-f",
      folder({ "times.yaml": policy }),
    ]);
    expect(stdout).toMatch(
      /timeouts +defaults of TrafficPolicy team-tea\/times at ListenerSet team-tea\/tea +request 30s, idle 90s; what the route itself says comes first/,
    );
    expect(stdout).toMatch(/requestBody +overrides of TrafficPolicy team-tea\/times .* a body of 10Mi/);
  });

  test("is that of the rule: another rule of the route has another one", async () => {
    expect(settings(await explained("http://coffee.example.com:8080/", ...EXAMPLE))).toEqual([
      "clientAddress: behind-load-balancer overrides ",
      "clientAddresses: base overrides depends",
      "rateLimits: calm defaults counts",
    ]);
    expect(settings(await explained("http://tea.example.com:8080/", ...EXAMPLE))).toEqual([
      "clientAddress: behind-load-balancer overrides ",
      "clientAddresses: base overrides depends",
      "rateLimits: base defaults counts",
    ]);
  });

  test.each([
    ["192.0.2.1", { outcome: "respond", status: 403 }],
    ["203.0.113.9", { outcome: "respond", status: 403 }],
    ["::ffff:203.0.113.9", { outcome: "respond", status: 403 }],
    ["198.51.100.9", { outcome: "forward" }],
    ["::ffff:198.51.100.9", { outcome: "forward" }],
  ])("--client %s is judged by all address lists", async (client, outcome) => {
    expect(
      await explained("http://coffee.example.com:8080/stock", "--client", client, ...EXAMPLE),
    ).toMatchObject(outcome);
  });

  test("names the first policy that refuses", async () => {
    const { steps } = await explained(
      "http://coffee.example.com:8080/stock",
      "--client",
      "203.0.113.9",
      ...EXAMPLE,
    );
    expect(steps.at(-1)).toEqual({
      at: "guard",
      text: "403: TrafficPolicy platform/base: does not let 203.0.113.9 in",
    });
  });

  test("is printed as text", async () => {
    const { stdout } = await mergeway(["explain", "http://coffee.example.com:8080/", ...EXAMPLE]);
    expect(stdout).toMatch(
      /\nPolicy\n.*\n {2}clientAddresses +overrides of TrafficPolicy platform\/base at Gateway platform\/shared +deny 203\.0\.113\.0\/24; name a client/,
    );
    expect(stdout).toMatch(/gave way to defaults of TrafficPolicy team-coffee\/calm/);
    expect(stdout).toMatch(/20 requests in 1s, 40 at once, for each client address/);
  });

  test("--client takes an address and nothing else", async () => {
    const { code, stderr } = await mergeway([
      "explain",
      "http://coffee.example.com:8080/",
      "--client",
      "example.com",
      ...EXAMPLE,
    ]);
    expect(code).toBe(2);
    expect(stderr).toContain('"example.com" is not an address of a client');
  });

  test("a policy that cannot be read lets nothing pass", async () => {
    const policy = `
apiVersion: mergeway.dev/v1alpha1
kind: TrafficPolicy
metadata: {name: odd, namespace: team-tea}
spec:
  targetRefs: [{kind: ListenerSet, name: tea}]
  overrides: {clientAddresses: {allow: ["::ffff:c000:201"]}}
`;
    const file = folder({ "odd.yaml": policy });
    const found = await explained("http://tea.example.com:8080/", ...EXAMPLE, "-f", file);
    expect(found).toMatchObject({ outcome: "respond", status: 500 });
    expect(settings(found)).toContain("clientAddresses: odd overrides ");
  });

  test("streams have address lists and no rate limits", async () => {
    const stream = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: tcp, namespace: infra}
spec: {gatewayClassName: mergeway, listeners: [{name: tcp, port: 9000, protocol: TCP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: TCPRoute
metadata: {name: tcp, namespace: infra}
spec: {parentRefs: [{name: tcp}], rules: [{backendRefs: [{name: web, port: 80}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: infra}
spec: {ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: infra, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
endpoints: [{addresses: [10.0.0.1]}]
ports: [{port: 80}]
---
apiVersion: mergeway.dev/v1alpha1
kind: TrafficPolicy
metadata: {name: base, namespace: infra}
spec:
  targetRefs: [{kind: Gateway, name: tcp}]
  overrides: {clientAddresses: {allow: [192.0.2.0/24]}, rateLimits: [{requests: 1}]}
`;
    const file = folder({ "all.yaml": stream });
    const found = await explained("tcp://any:9000", "--client", "198.51.100.1", "-f", file);
    expect(found.outcome).toBe("refuse");
    expect(settings(found)).toEqual(["clientAddresses: base overrides refuses"]);
  });
});
