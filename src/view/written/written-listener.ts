import type { Listener, ListenerStatus } from "../../api/gateway.ts";
import { type Key, keyFor } from "../../api/key.ts";
import type { ObjectMeta } from "../../api/metadata.ts";
import type { Resource } from "../../api/resource.ts";
import { listenerKey } from "../../engine/listeners/listeners.ts";
import { stateOf } from "../build-listener.ts";
import { certificateFacts } from "../certificate-facts.ts";
import type { CertificateView, ListenerView } from "../merged-state.ts";
import { currentVerdicts } from "./current-verdicts.ts";
import type { PolicyIndex } from "./written-policies.ts";
import type { RoutesByListener } from "./written-routes.ts";

/** What only the merge of all owners knows. */
export interface KnownMerge {
  precedenceOf(owner: Key): number | undefined;
  holderOf(listener: string): Pick<ListenerView, "heldBy" | "decidedBy">;
}

interface WrittenEntry {
  readonly owner: Key;
  readonly metadata: ObjectMeta;
  readonly listener: Listener;
  readonly statuses: readonly ListenerStatus[];
}

interface ListenerParts {
  readonly resources: ReadonlyMap<Key, Resource>;
  readonly policies: PolicyIndex;
  readonly routes: RoutesByListener;
  readonly merge?: KnownMerge;
}

export function writtenListener(
  { owner, metadata, listener, statuses }: WrittenEntry,
  { resources, policies, routes, merge }: ListenerParts,
): ListenerView {
  const key = listenerKey(owner, listener.name);
  const status = statuses.find(({ name }) => name === listener.name);
  const verdicts = currentVerdicts(metadata, status?.conditions);
  const judged = verdicts.length === 0 ? NOT_JUDGED : stateOf(verdicts);
  const resolved = verdicts.find(({ type }) => type === "ResolvedRefs");
  const isAccepted = judged.state !== "refused" && judged.state !== "conflicted";
  return {
    key,
    section: listener.name,
    port: listener.port || (status?.port ?? 0),
    protocol: listener.protocol,
    hostname: listener.hostname ?? "",
    ...judged,
    ...(isAccepted && resolved?.status === "False"
      ? { unresolved: { reason: resolved.reason, message: resolved.message } }
      : {}),
    ...(judged.state === "conflicted" ? merge?.holderOf(key) : {}),
    certificates: readCertificates(listener, metadata.namespace ?? "", resources),
    policies: policies.at(owner, listener.name),
    attachedRoutes: status?.attachedRoutes ?? 0,
    routes: routes.get(key) ?? [],
  };
}

export const NOT_JUDGED = {
  state: "waiting",
  reason: "Pending",
  message: "the controller has not written what it makes of this version",
} as const;

/** Those that may be read: what is wrong with others is in the condition ResolvedRefs. */
function readCertificates(
  { tls }: Listener,
  namespace: string,
  resources: ReadonlyMap<Key, Resource>,
): readonly CertificateView[] {
  return (tls?.certificateRefs ?? []).flatMap((reference) => {
    const home = reference.namespace ?? namespace;
    const secret = resources.get(keyFor("Secret", home, reference.name));
    if (secret?.kind !== "Secret") return [];
    const facts = certificateFacts(secret);
    const name = `${home}/${reference.name}`;
    return [
      "problem" in facts ? { secret: name, names: [], problem: facts.problem } : { secret: name, ...facts },
    ];
  });
}
