// Three changes a second, of every kind in turn. All but the tenants that come and go are changes
// of tenants under load, whose requests must not notice.

import { type Place, removeTenant, type Version, writeTenant } from "./world.ts";

const FIRST: Version = { certificate: 0, backend: 0, extraPath: "/extra-0" };
/** Tenants that come and go, beside those under load. */
const GUESTS = 20;

export class Changes {
  readonly #place: Place;
  readonly #tenants: readonly string[];
  readonly #versions = new Map<string, Version>();
  readonly #guests: string[] = [];
  #count = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(place: Place, tenants: readonly string[]) {
    this.#place = place;
    this.#tenants = tenants;
    for (const tenant of tenants) this.#put(tenant, FIRST);
  }

  get count(): number {
    return this.#count;
  }

  start(perSecond: number): void {
    this.#timer = setInterval(() => this.#change(), 1000 / perSecond);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #change(): void {
    const number = this.#count++;
    // One further after each round, so that every tenant meets every kind of change.
    const round = Math.floor(number / this.#tenants.length);
    const tenant = this.#tenants[(number * 37 + round) % this.#tenants.length] ?? "";
    const version = this.#versions.get(tenant) ?? FIRST;
    const kinds: readonly (() => void)[] = [
      () => this.#put(tenant, { ...version, extraPath: `/extra-${number}` }),
      () => this.#put(tenant, { ...version, certificate: number + 1 }),
      () => this.#put(tenant, { ...version, backend: version.backend === 0 ? 1 : 0 }),
      () => this.#comeAndGo(number),
    ];
    kinds[number % kinds.length]?.();
  }

  #put(tenant: string, version: Version): void {
    writeTenant(this.#place, tenant, version, this.#versions.get(tenant));
    this.#versions.set(tenant, version);
  }

  #comeAndGo(number: number): void {
    const oldest = this.#guests.length < GUESTS ? undefined : this.#guests.shift();
    if (oldest !== undefined) removeTenant(this.#place, oldest);
    const guest = `guest-${number}`;
    this.#guests.push(guest);
    writeTenant(this.#place, guest, FIRST);
  }
}
