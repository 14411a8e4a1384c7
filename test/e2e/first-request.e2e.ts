/**
 * docs/guides/kubernetes.md, read aloud: its commands and manifests, as they stand there, from an
 * empty cluster to the first answer through a ListenerSet. Every namespace admits only pods of the
 * Pod Security Standard "restricted". Needs `npm run build`.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Bed, ok } from "../../tools/cluster/bed.ts";
import { CHART, ROOT, readText } from "../../tools/cluster/chart.ts";
import { hasImage, loadImage } from "../../tools/cluster/cluster.ts";
import { loadSuiteImages } from "../../tools/cluster/conformance.ts";
import { productImage } from "../../tools/images/product-image.ts";
import { eventually } from "./support/served-cluster.ts";

const OWN = "mergeway-system";
const ECHO = "registry.k8s.io/gateway-api/conformance/echo-basic:v0.1.0";

let bed: Bed;

beforeAll(async () => {
  bed = await Bed.up("e2e-first");
  const { version } = JSON.parse(readText("package.json")) as { version: string };
  await loadImage(bed.cluster, await productImage(ROOT, `mergeway:${version}`));
  await loadSuiteImages(bed.cluster);
  expect(await hasImage(bed.cluster, ECHO)).toBe(true);
  for (const name of ["gateways", "team-a", "other-team"]) await restrictedNamespace(name);
});

afterAll(async () => {
  await bed?.down();
});

async function restrictedNamespace(name: string): Promise<void> {
  const labels = { "pod-security.kubernetes.io/enforce": "restricted", listeners: "allowed" };
  const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name, labels } };
  await ok(bed.kubectl(["apply", "-f", "-"], JSON.stringify(namespace)));
}

/** Blocks of one language below a heading of the guide. */
function blocks(heading: string, language: "sh" | "yaml"): readonly string[] {
  const [, rest = ""] = readText("docs/guides/kubernetes.md").split(`\n## ${heading}\n`);
  const part = rest.split("\n## ")[0] ?? "";
  return [...part.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, "gms"))].map(
    ([, block]) => block ?? "",
  );
}

function blockWith(heading: string, text: string): string {
  const found = blocks(heading, "sh").find((block) => block.includes(text));
  if (found === undefined)
    throw new Error(`the guide has no command with "${text}" below "${heading}" any more`);
  return found;
}

/** What the guide leaves to the reader: any HTTP server. */
const BACKEND = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "web", namespace: "team-a" },
  spec: {
    selector: { matchLabels: { app: "web" } },
    template: {
      metadata: { labels: { app: "web" } },
      spec: {
        securityContext: { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: "RuntimeDefault" } },
        containers: [
          {
            name: "web",
            image: ECHO,
            env: Object.entries({ HTTP_PORT: "8080", POD_NAME: "web", NAMESPACE: "team-a" }).map(
              ([name, value]) => ({
                name,
                value,
              }),
            ),
            securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
          },
        ],
      },
    },
  },
};

describe("the guide", () => {
  test("installs Mergeway", async () => {
    await ok(bed.shell(blockWith("Install", "helm template")));
    const out = await ok(bed.shell(blockWith("Install", "rollout status")));
    expect(out).toContain("successfully rolled out");
    await ok(bed.kubectl(["wait", "gatewayclass/mergeway", "--for=condition=Accepted", "--timeout=180s"]));
  });

  test("gets the first answer through a ListenerSet", async () => {
    await ok(bed.kubectl(["apply", "-f", "-"], blocks("First request", "yaml").join("---\n")));
    await ok(bed.kubectl(["apply", "-f", "-"], JSON.stringify(BACKEND)));
    await ok(bed.kubectl(["-n", "team-a", "rollout", "status", "deployment/web", "--timeout=180s"]));
    // A pod that is ready is known to the data plane a moment later.
    await eventually(async () => {
      const answer = await ok(bed.shell(blockWith("First request", "curl")));
      expect(answer).toMatch(/^HTTP\/1\.1 200 /m);
      expect(answer).toContain('"namespace": "team-a"');
    });
  });

  test("finds what was made under the name that it says", async () => {
    for (const kind of ["deployment", "service", "serviceaccount"]) {
      await ok(bed.kubectl(["-n", "gateways", "get", kind, "shared-mergeway"]));
    }
  });
});

describe("limited to namespaces", () => {
  test("a controller goes on serving what it may see", async () => {
    const settings = "--set=controller.watchNamespaces={gateways,team-a}";
    const rendered = await ok(bed.helm(["template", "mergeway", CHART, "-n", OWN, settings]));
    await ok(bed.kubectl(["delete", "clusterrolebinding", "mergeway-read", "mergeway-infrastructure"]));
    await ok(bed.kubectl(["apply", "--server-side", "-f", "-"], rendered));
    await ok(bed.kubectl(["-n", OWN, "rollout", "status", "deployment/mergeway", "--timeout=240s"]));
    const more = { name: "more", hostname: "b.example.com", port: 80, protocol: "HTTP" };
    const patch = JSON.stringify([{ op: "add", path: "/spec/listeners/-", value: more }]);
    await ok(bed.kubectl(["-n", "team-a", "patch", "listenerset", "team-a", "--type=json", "-p", patch]));
    const programmed =
      '{.status.listeners[?(@.name=="more")].conditions[?(@.type=="Programmed")].status}=True';
    await ok(
      bed.kubectl([
        "-n",
        "team-a",
        "wait",
        "listenerset/team-a",
        `--for=jsonpath=${programmed}`,
        "--timeout=180s",
      ]),
    );
    const ask = blockWith("First request", "curl").replaceAll("a.example.com", "b.example.com");
    await eventually(async () => expect(await ok(bed.shell(ask))).toMatch(/^HTTP\/1\.1 200 /m));
  });

  test("and nothing else", async () => {
    const gateway = blocks("First request", "yaml")[0]
      ?.split("---\n")[1]
      ?.replace("namespace: gateways", "namespace: other-team");
    expect(gateway).toContain("namespace: other-team");
    await ok(bed.kubectl(["apply", "-f", "-"], gateway ?? ""));
    // Something that it does see comes later and is served: by then it has had its chance.
    await ok(bed.kubectl(["-n", "gateways", "annotate", "gateway", "shared", "example.test/poke=1"]));
    const patch = JSON.stringify([
      { op: "replace", path: "/spec/listeners/1/hostname", value: "c.example.com" },
    ]);
    await ok(bed.kubectl(["-n", "team-a", "patch", "listenerset", "team-a", "--type=json", "-p", patch]));
    const seen = "{.status.conditions[?(@.type=='Programmed')].observedGeneration}=3";
    await ok(
      bed.kubectl(["-n", "team-a", "wait", "listenerset/team-a", `--for=jsonpath=${seen}`, "--timeout=180s"]),
    );
    expect(await ok(bed.kubectl(["-n", "other-team", "get", "deployments,services", "-o", "name"]))).toBe("");
    const status = await ok(
      bed.kubectl(["-n", "other-team", "get", "gateway", "shared", "-o", "jsonpath={.status}"]),
    );
    expect(status).not.toContain("172.30.");
    const log = await ok(
      bed.kubectl(["-n", OWN, "logs", "-l", "app.kubernetes.io/name=mergeway", "--tail=-1"]),
    );
    expect(log).not.toMatch(/forbidden/i);
  });
});
