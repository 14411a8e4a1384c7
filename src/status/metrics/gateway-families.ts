/** Metrics of GatewayClasses, Gateways and ListenerSets. */
import type { Gateway, GatewayClass, Listener, ListenerSet } from "../../api/gateway.ts";
import type { ClassVerdict, OwnerVerdict } from "../../engine/verdicts/verdicts.ts";
import {
  conditionSamples,
  info,
  type JudgedObject,
  LIFE_FAMILIES,
  type StateFamily,
  type StateSample,
} from "./state-family.ts";

export interface JudgedClass extends JudgedObject<GatewayClass, ClassVerdict> {
  readonly features: readonly string[];
}

export const CLASS_FAMILIES: readonly StateFamily<JudgedClass>[] = [
  {
    suffix: "info",
    help: "A GatewayClass of this controller, always 1",
    labels: ["controller_name"],
    samples: ({ resource: { spec } }) => [info(spec.controllerName)],
  },
  ...LIFE_FAMILIES,
  {
    suffix: "status",
    help: "1 where the condition of the GatewayClass is True",
    labels: ["type"],
    samples: ({ verdict }) => conditionSamples(verdict.conditions),
  },
  {
    suffix: "status_supported_features",
    help: "A feature that the status of the GatewayClass lists, always 1",
    labels: ["features"],
    samples: ({ features }) => features.map((feature) => info(feature)),
  },
];

type JudgedGateway = JudgedObject<Gateway, OwnerVerdict>;
type JudgedSet = JudgedObject<ListenerSet, OwnerVerdict>;

/** Of whatever carries listeners. */
const LISTENER_FAMILIES: readonly StateFamily<JudgedGateway | JudgedSet>[] = [
  {
    suffix: "listener_info",
    help: "A listener of the spec, always 1; a port that was assigned is that of the status",
    labels: [
      ...["listener_name", "port", "protocol", "hostname", "tls_mode"],
      "allowed_routes_namespaces_from",
    ],
    samples: ({ resource: { spec }, verdict }) =>
      (spec.listeners ?? []).map((listener) => listenerInfo(listener, verdict)),
  },
  {
    suffix: "status",
    help: "1 where the condition of the object is True",
    labels: ["type"],
    samples: ({ verdict }) => conditionSamples(verdict.conditions),
  },
  {
    suffix: "status_listener_attached_routes",
    help: "Routes that a listener has, as its status counts them",
    labels: ["listener_name"],
    samples: ({ verdict: { listeners } }) =>
      listeners.map(({ name, attachedRoutes }) => ({ values: [name], value: attachedRoutes })),
  },
];

function listenerInfo(
  { name, port = 0, protocol, hostname, tls, allowedRoutes }: Listener,
  { listeners }: OwnerVerdict,
): StateSample {
  const known = port > 0 ? port : (listeners.find((listener) => listener.name === name)?.port ?? 0);
  return info(
    name,
    known > 0 ? known : undefined,
    protocol,
    hostname,
    tls?.mode,
    allowedRoutes?.namespaces?.from,
  );
}

export const GATEWAY_FAMILIES: readonly StateFamily<JudgedGateway>[] = [
  {
    suffix: "info",
    help: "A Gateway of this controller, always 1",
    labels: ["gatewayclass_name"],
    samples: ({ resource: { spec } }) => [info(spec.gatewayClassName)],
  },
  ...LIFE_FAMILIES,
  ...LISTENER_FAMILIES,
  {
    suffix: "status_attached_listener_sets",
    help: "Sets that the Gateway has accepted, as its status counts them",
    labels: [],
    samples: ({ verdict: { attachedListenerSets = 0 } }) => [{ values: [], value: attachedListenerSets }],
  },
  {
    suffix: "status_address_info",
    help: "An address of the status, always 1",
    labels: ["type", "value"],
    samples: ({ verdict: { addresses = [] } }) => addresses.map(({ type, value }) => info(type, value)),
  },
];

export const SET_FAMILIES: readonly StateFamily<JudgedSet>[] = [
  {
    suffix: "info",
    help: "A ListenerSet or XListenerSet of a Gateway of this controller, always 1",
    labels: [],
    samples: () => [info()],
  },
  {
    suffix: "parent_info",
    help: "The Gateway that the set names, always 1",
    labels: ["parent_group", "parent_kind", "parent_namespace", "parent_name"],
    samples: ({ resource: { metadata, spec } }) => {
      const { group, kind, namespace = metadata.namespace, name } = spec.parentRef;
      return [info(group, kind, namespace, name)];
    },
  },
  ...LIFE_FAMILIES,
  ...LISTENER_FAMILIES,
];
