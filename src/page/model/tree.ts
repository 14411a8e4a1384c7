/**
 * The tree: Gateway → owner → listener → route → backend. Nodes are made when their parent is open,
 * so that a world of 40,000 routes costs what is seen of it.
 */
import type { ObjectRef, StrayPolicy, StrayRoute } from "../../view/merged-state.ts";
import type {
  Outline,
  OutlineBackend,
  OutlineGateway,
  OutlineListener,
  OutlineOwner,
  OutlineRoute,
} from "../../view/outline.ts";

interface NodeBase {
  /** Stable and readable: it is a part of URLs. */
  readonly id: string;
}

export type TreeNode =
  | GatewayNode
  | OwnerNode
  | ListenerNode
  | RouteNode
  | BackendNode
  | GroupNode
  | StrayNode
  | StrayPolicyNode
  | ForeignNode;

export interface GatewayNode extends NodeBase {
  readonly type: "gateway";
  readonly gateway: OutlineGateway;
}

export interface OwnerNode extends NodeBase {
  readonly type: "owner";
  readonly owner: OutlineOwner;
  /** Absent for an owner whose Gateway is not there. */
  readonly gateway?: OutlineGateway;
}

export interface ListenerNode extends NodeBase {
  readonly type: "listener";
  readonly owner: OutlineOwner;
  readonly listener: OutlineListener;
}

export interface RouteNode extends NodeBase {
  readonly type: "route";
  readonly route: OutlineRoute;
}

export interface BackendNode extends NodeBase {
  readonly type: "backend";
  readonly backend: OutlineBackend;
  readonly weight: number;
}

export type Group = "orphans" | "strays" | "policies" | "foreign";

/** What belongs to no Gateway that is served here. */
export interface GroupNode extends NodeBase {
  readonly type: "group";
  readonly group: Group;
  readonly count: number;
}

export interface StrayNode extends NodeBase {
  readonly type: "stray";
  readonly route: StrayRoute;
}

export interface StrayPolicyNode extends NodeBase {
  readonly type: "stray-policy";
  readonly policy: StrayPolicy;
}

export interface ForeignNode extends NodeBase {
  readonly type: "foreign";
  readonly ref: ObjectRef;
}

export function objectKey({ kind, namespace, name }: ObjectRef): string {
  return `${kind}/${namespace}/${name}`;
}

export function ownerNodeId(ref: ObjectRef): string {
  return `owner:${objectKey(ref)}`;
}

export function listenerNodeId(ref: ObjectRef & { readonly section: string }): string {
  return `listener:${objectKey(ref)}#${ref.section}`;
}

export function routeNodeId(listener: string, route: ObjectRef): string {
  return `${listener}>${objectKey(route)}`;
}

export function rootsOf({
  gateways,
  orphans,
  strayRoutes,
  strayPolicies,
  foreign,
}: Outline): readonly TreeNode[] {
  const groups: readonly GroupNode[] = [
    { type: "group", id: "group:orphans", group: "orphans", count: orphans.length },
    { type: "group", id: "group:strays", group: "strays", count: strayRoutes.length },
    { type: "group", id: "group:policies", group: "policies", count: strayPolicies.length },
    { type: "group", id: "group:foreign", group: "foreign", count: foreign.length },
  ];
  return [
    ...gateways.map(
      (gateway): GatewayNode => ({
        type: "gateway",
        id: `gateway:${gateway.namespace}/${gateway.name}`,
        gateway,
      }),
    ),
    ...groups.filter(({ count }) => count > 0),
  ];
}

export function childrenOf(outline: Outline, node: TreeNode): readonly TreeNode[] {
  switch (node.type) {
    case "gateway":
      return node.gateway.owners.map((owner) => ownerNode(owner, node.gateway));
    case "owner":
      return node.owner.listeners.map((listener) => ({
        type: "listener",
        id: listenerNodeId({ ...node.owner, section: listener.section }),
        owner: node.owner,
        listener,
      }));
    case "listener":
      return node.listener.routes.flatMap((index): readonly RouteNode[] => {
        const route = outline.routes[index];
        return route === undefined ? [] : [{ type: "route", id: routeNodeId(node.id, route), route }];
      });
    case "route":
      return node.route.backends.flatMap(({ backend: index, weight }): readonly BackendNode[] => {
        const backend = outline.backends[index];
        if (backend === undefined) return [];
        return [
          {
            type: "backend",
            id: `${node.id}>${objectKey(backend)}:${backend.port}:${weight}`,
            backend,
            weight,
          },
        ];
      });
    case "group":
      return groupChildren(outline, node);
    default:
      return [];
  }
}

function groupChildren(
  { orphans, strayRoutes, strayPolicies, foreign }: Outline,
  { group }: GroupNode,
): readonly TreeNode[] {
  switch (group) {
    case "orphans":
      return orphans.map((owner) => ownerNode(owner));
    case "strays":
      return strayRoutes.map((route) => ({ type: "stray", id: `stray:${objectKey(route)}`, route }));
    case "policies":
      return strayPolicies.map((policy) => ({ type: "stray-policy", id: strayPolicyId(policy), policy }));
    case "foreign":
      return foreign.map((ref) => ({ type: "foreign", id: `foreign:${objectKey(ref)}`, ref }));
  }
}

function strayPolicyId({ target, ...policy }: StrayPolicy): string {
  return `policy:${objectKey(policy)}>${objectKey(target)}#${target.section}`;
}

function ownerNode(owner: OutlineOwner, gateway?: OutlineGateway): OwnerNode {
  return { type: "owner", id: ownerNodeId(owner), owner, ...(gateway === undefined ? {} : { gateway }) };
}

export function hasChildren(node: TreeNode): boolean {
  switch (node.type) {
    case "gateway":
      return node.gateway.owners.length > 0;
    case "owner":
      return node.owner.listeners.length > 0;
    case "listener":
      return node.listener.routes.length > 0;
    case "route":
      return node.route.backends.length > 0;
    case "group":
      return node.count > 0;
    default:
      return false;
  }
}
