const ECHO = "registry.k8s.io/gateway-api/conformance/echo-basic:v0.2.0";

/**
 * A Service `echo` on port 8080, in the namespace default, whose one pod answers every request with
 * what it got.
 */
export const ECHO_BACKEND: readonly object[] = [
  inDefault("v1", "Service", { selector: { app: "echo" }, ports: [{ port: 8080, targetPort: 3000 }] }),
  inDefault("apps/v1", "Deployment", {
    selector: { matchLabels: { app: "echo" } },
    template: {
      metadata: { labels: { app: "echo" } },
      spec: {
        containers: [
          { name: "echo", image: ECHO, env: environment({ POD_NAME: "echo", NAMESPACE: "default" }) },
        ],
      },
    },
  }),
];

function inDefault(apiVersion: string, kind: string, spec: object): object {
  return { apiVersion, kind, metadata: { name: "echo", namespace: "default" }, spec };
}

function environment(values: Readonly<Record<string, string>>): readonly object[] {
  return Object.entries(values).map(([name, value]) => ({ name, value }));
}
