import { stringify } from "yaml";
import { embeddedFeatures } from "../../dataplanes/embedded/features.ts";
import { tunnelFeatures } from "../../dataplanes/tunnel/features.ts";
import { type IngressRefusal, ingressDocument } from "../../dataplanes/tunnel/ingress-document.ts";
import { Engine } from "../../engine/engine.ts";
import type { BackendItem } from "../../plan/backend.ts";
import { loadPaths } from "../../sources/files/load-paths.ts";
import { CannotRun, type ExitCode, type Host } from "../foundation/command.ts";
import { standaloneSettings } from "../workspace/engine-settings.ts";

export interface TunnelRenderOptions {
  readonly paths: readonly string[];
  readonly gateway: string | undefined;
  readonly targets: string;
  readonly clusterDomain: string;
  readonly output: string;
  readonly partial: boolean;
}

export async function runRender(options: TunnelRenderOptions, { out, err }: Host): Promise<ExitCode> {
  const { resources, errors } = await loadPaths(options.paths);
  for (const { file, line, column, message } of errors) {
    err.line(`${err.style("red", "error:")} ${file}:${line}:${column}: ${message}`);
  }
  const features = tunnelFeatures(embeddedFeatures);
  const engine = new Engine(standaloneSettings({ features, assumeProgrammed: true }));
  engine.apply(Array.from(resources, ([key, { resource }]) => ({ key, resource })));
  const plan = [...engine.plan()];
  const served = plan.flatMap((item) => (item.type === "gateway" ? [item.gateway] : []));
  const { ingress, refusals } = ingressDocument(plan, chosenGateway(served, options.gateway), {
    authorityOf: (backend) => authorityOf(backend, options),
  });
  for (const refusal of refusals) err.line(`${err.style("yellow", "refused:")} ${refusalLine(refusal)}`);
  const incomplete = refusals.length > 0 || errors.length > 0;
  const unusable = refusals.some(({ subject }) => subject === "document");
  if (incomplete && (!options.partial || unusable)) {
    err.line(`No document is printed.${unusable ? "" : " --partial prints it without these."}`);
    return 1;
  }
  out.write(
    options.output === "json"
      ? `${JSON.stringify({ config: { ingress } }, null, 2)}\n`
      : stringify({ ingress }, { lineWidth: 0 }),
  );
  return incomplete ? 1 : 0;
}

function chosenGateway(served: readonly string[], wanted: string | undefined): string {
  const list = served.length === 0 ? "there is none" : `there are ${[...served].sort().join(", ")}`;
  if (wanted !== undefined) {
    if (served.includes(wanted)) return wanted;
    throw new CannotRun(`tunnel: there is no Gateway ${wanted} that is served`, `Of these, ${list}.`);
  }
  const [only, ...others] = served;
  if (only !== undefined && others.length === 0) return only;
  throw new CannotRun(
    `tunnel: one Gateway has one tunnel, and ${list}`,
    "Name the one that is meant with --gateway NAMESPACE/NAME.",
  );
}

function authorityOf(
  { service, endpoints }: BackendItem,
  { targets, clusterDomain }: TunnelRenderOptions,
): string {
  const [only, ...others] = endpoints;
  if (targets === "endpoints" && only !== undefined && others.length === 0) {
    return `${only.address.includes(":") ? `[${only.address}]` : only.address}:${only.port}`;
  }
  return `${service.name}.${service.namespace}.svc.${clusterDomain}:${service.port}`;
}

function refusalLine({ subject, message }: IngressRefusal): string {
  if (subject === "document") return `the document: ${message}`;
  if ("listener" in subject) return `${subject.listener.replace(/^listener:/, "")}: ${message}`;
  const { kind, namespace, name, rule, match } = subject;
  return `${kind} ${namespace}/${name}, rule ${rule + 1}, match ${match + 1}: ${message}`;
}
