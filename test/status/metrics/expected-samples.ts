/** What metrics must say, read from manifests and the statuses that would be written for them. */
import type { Resource } from "../../../src/api/resource.ts";
import type { ReadSample } from "./exposition-reader.ts";

// biome-ignore lint/suspicious/noExplicitAny: manifests and statuses, as YAML has them
type Manifest = any;
type Label = string | number | undefined;

export function expectedSamples(resource: Resource, rendered: unknown): readonly ReadSample[] {
  const { kind, metadata, spec } = resource as Manifest;
  const status = rendered as Manifest;
  const isSet = kind === "ListenerSet" || kind === "XListenerSet";
  const prefix = `gatewayapi_${isSet ? "listenerset" : kind.toLowerCase()}`;
  const identity = {
    name: metadata.name,
    namespace: metadata.namespace,
    customresource_kind: isSet ? kind : undefined,
  };
  const sample = (suffix: string, labels: Readonly<Record<string, Label>>, value = 1): ReadSample => ({
    name: `${prefix}_${suffix}`,
    labels: Object.fromEntries(
      Object.entries({ ...identity, ...labels }).flatMap(([label, text]) =>
        text === undefined ? [] : [[label, String(text)]],
      ),
    ),
    value,
  });
  const conditions = (list: readonly Manifest[], suffix: string, labels = {}): readonly ReadSample[] =>
    list.map(({ type, status: is }) => sample(suffix, { ...labels, type }, is === "True" ? 1 : 0));
  const parent = (ref: Manifest, withSection = true): Readonly<Record<string, Label>> => ({
    parent_group: ref.group,
    parent_kind: ref.kind,
    parent_name: ref.name,
    parent_namespace: ref.namespace ?? metadata.namespace,
    ...(withSection ? { parent_section_name: ref.sectionName, parent_port: ref.port } : {}),
  });
  const assigned = (name: string): Label =>
    status.listeners.find((listener: Manifest) => listener.name === name)?.port;
  const times = [
    ...(metadata.creationTimestamp === undefined
      ? []
      : [sample("created", {}, Date.parse(metadata.creationTimestamp) / 1000)]),
    ...(metadata.deletionTimestamp === undefined
      ? []
      : [sample("deleted", {}, Date.parse(metadata.deletionTimestamp) / 1000)]),
  ];
  if (kind === "GatewayClass") {
    const about = { controller_name: spec.controllerName };
    return [
      sample("info", about),
      ...times,
      ...conditions(status.conditions, "status"),
      ...(status.supportedFeatures ?? []).map(({ name }: Manifest) =>
        sample("status_supported_features", { features: name }),
      ),
    ];
  }
  if (kind.endsWith("Route")) {
    return [
      ...times,
      ...(spec.hostnames ?? []).map((hostname: string) => sample("hostname_info", { hostname })),
      ...(spec.parentRefs ?? []).map((ref: Manifest) => sample("parent_info", parent(ref))),
      ...status.parents.flatMap(({ controllerName, parentRef, conditions: own }: Manifest) => [
        sample("status_parent_info", { controller_name: controllerName, ...parent(parentRef) }),
        ...conditions(own, "status_parent", parent(parentRef)),
      ]),
    ];
  }
  return [
    ...times,
    ...(isSet
      ? [sample("info", {}), sample("parent_info", parent(spec.parentRef, false))]
      : [
          sample("info", { gatewayclass_name: spec.gatewayClassName }),
          sample("status_attached_listener_sets", {}, status.attachedListenerSets),
          ...status.addresses.map(({ type, value }: Manifest) =>
            sample("status_address_info", { type, value }),
          ),
        ]),
    ...(spec.listeners ?? []).map(
      ({ name, port, protocol, hostname, tls, allowedRoutes }: Manifest): ReadSample =>
        sample("listener_info", {
          listener_name: name,
          port: port || assigned(name),
          protocol,
          hostname,
          tls_mode: tls?.mode,
          allowed_routes_namespaces_from: allowedRoutes?.namespaces?.from,
        }),
    ),
    ...conditions(status.conditions, "status"),
    ...status.listeners.map(({ name, attachedRoutes }: Manifest) =>
      sample("status_listener_attached_routes", { listener_name: name }, attachedRoutes),
    ),
  ];
}
