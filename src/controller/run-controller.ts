/**
 * The controller's process: the assembled controller, and what it opens to pods, kubelet and
 * Prometheus.
 */

import { TOKEN_AUDIENCE } from "../dataplanes/remote/protocol/protocol.ts";
import { PlanServer } from "../dataplanes/remote/publisher/plan-server.ts";
import { digest } from "../digest/digest.ts";
import { ensureAuthority, tokenFor } from "../infra/authority.ts";
import { createKubernetesClient } from "../kubernetes/client.ts";
import { assembleController } from "./assemble-controller.ts";
import type { ControllerOptions } from "./controller-options.ts";
import { openHealthServer } from "./health.ts";
import { AuthoritySecret } from "./pod-stream/authority-secret.ts";
import { PodIdentity } from "./pod-stream/pod-identity.ts";
import { RefusalLog } from "./pod-stream/refusal-log.ts";
import { ServingCertificate } from "./pod-stream/serving-certificate.ts";

export async function runController(options: ControllerOptions, signal: AbortSignal): Promise<void> {
  const { observer, metrics } = options;
  const client = await createKubernetesClient({
    observer,
    ...(options.kubeconfig === undefined ? {} : { kubeconfig: options.kubeconfig }),
    ...(options.context === undefined ? {} : { context: options.context }),
  });
  let isSynced = (): boolean => false;
  const health = await openHealthServer(options.healthAddress, () => isSynced());
  const exposition = await metrics.serve(options.metricsAddress);
  const authority = await ensureAuthority(new AuthoritySecret(client, options.namespace));
  const controller = assembleController(options, {
    client,
    authority: authority.certificate,
    drainToken: (uid) => tokenFor(authority, `drain ${uid}`),
    referenceOf: (gateway, hostname) => digest(tokenFor(authority, `name ${gateway} ${hostname}`), "hex", 16),
  });
  isSynced = () => controller.isSynced;
  const serving = new ServingCertificate(authority, options.streamService);
  const { certificate, key } = await serving.issue();
  const identity = new PodIdentity(client, TOKEN_AUDIENCE, (key) => controller.names.find(key));
  const refusals = new RefusalLog();
  const planServer = new PlanServer({
    certificate,
    key,
    publisher: controller.publisher,
    address: options.stream.address,
    port: options.stream.port,
    authorize: (token, claim) => identity.mayServe(token, claim),
    onRefused: (refusal) => {
      metrics.refused(refusal.reason);
      const line = refusals.line(refusal);
      if (line !== undefined) observer.log?.("warn", line);
    },
  });
  await planServer.listen();
  serving.keepRenewed((pair) => planServer.renew(pair), observer.log);
  await controller.run(signal);
  await planServer.close();
  health.close();
  exposition.close();
}
