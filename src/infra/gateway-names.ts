/**
 * Who is called `<gateway>-<class>` where two Gateways of a namespace would be: `a-b` of class `c`
 * and `a` of class `b-c`. One has that name, the other one with a digest. A Gateway keeps the name
 * that its Service bears, so that nothing is renamed when the other comes or goes; before there are
 * Services, the older has the plain one.
 */

import type { Gateway, GatewayClass } from "../api/gateway.ts";
import { type Key, keyFor } from "../api/key.ts";
import type { Resource } from "../api/resource.ts";
import { digest } from "../digest/digest.ts";
import { bounded, GATEWAY_NAME_ANNOTATION, type NamedGateway, plainName } from "./objects/names.ts";
import { headlessServiceName, serviceName } from "./objects/services.ts";

type Find = (key: Key) => Resource | undefined;

export class GatewayNames {
  readonly #find: Find;
  /** Gateways by `namespace/plain name`. */
  readonly #alike: Map<string, Set<Key>> = new Map();
  readonly #noted: Map<Key, string> = new Map();

  constructor(find: Find) {
    this.#find = find;
  }

  /** Takes every change, before names are asked for. */
  notice(key: Key, resource: Resource | undefined): void {
    if (!key.startsWith("Gateway/")) return;
    const before = this.#noted.get(key);
    const after = resource?.kind === "Gateway" ? placeOf(resource) : undefined;
    if (before === after) return;
    if (before !== undefined) this.#forget(before, key);
    if (after === undefined) {
      this.#noted.delete(key);
      return;
    }
    this.#noted.set(key, after);
    this.#alike.set(after, (this.#alike.get(after) ?? new Set()).add(key));
  }

  /**
   * The resource; a Gateway with the name that its infrastructure has, where that is not the plain
   * one.
   */
  find(key: Key): Resource | undefined {
    const found = this.#find(key);
    if (found?.kind !== "Gateway" || !this.#yields(found)) return found;
    const named: NamedGateway = { ...found, infrastructureName: distinctName(found) };
    return named;
  }

  #yields(gateway: Gateway): boolean {
    const holder = this.#ownerOf(gateway, plainName(gateway));
    if (holder === gateway.metadata.name) return false;
    if (holder !== undefined || this.#ownerOf(gateway, distinctName(gateway)) === gateway.metadata.name)
      return true;
    const rivals = this.#alike.get(placeOf(gateway)) ?? [];
    return [...rivals].some((key) => {
      const rival = this.#find(key) as Gateway | undefined;
      return rival !== undefined && this.#servesBoth(rival, gateway) && age(rival) < age(gateway);
    });
  }

  /**
   * The Gateway that a Service of this name was made for; what has no address of its own has a
   * headless one.
   */
  #ownerOf(gateway: Gateway, name: string): string | undefined {
    const named: NamedGateway = { ...gateway, infrastructureName: name };
    const owners = [serviceName(named, 0), headlessServiceName(named)].map((service) => {
      const found = this.#find(keyFor("Service", gateway.metadata.namespace ?? "", service));
      return found?.metadata.annotations?.[GATEWAY_NAME_ANNOTATION];
    });
    return owners.find((owner) => owner !== undefined);
  }

  #servesBoth(one: Gateway, other: Gateway): boolean {
    const controller = ({ spec }: Gateway): string | undefined =>
      (this.#find(keyFor("GatewayClass", "", spec.gatewayClassName)) as GatewayClass | undefined)?.spec
        .controllerName;
    return controller(one) === controller(other);
  }

  #forget(place: string, key: Key): void {
    const left = this.#alike.get(place);
    left?.delete(key);
    if (left?.size === 0) this.#alike.delete(place);
  }
}

function placeOf(gateway: Gateway): string {
  return `${gateway.metadata.namespace}/${plainName(gateway)}`;
}

/** Of both names apart: no other Gateway has it. */
function distinctName(gateway: Gateway): string {
  const { name } = gateway.metadata;
  const suffix = digest(`${name}/${gateway.spec.gatewayClassName}`, "hex", 8);
  return bounded(`${plainName(gateway)}-${suffix}`);
}

function age({ metadata: { creationTimestamp = "", name } }: Gateway): string {
  return `${creationTimestamp}/${name}`;
}
