/**
 * Loopback ports of Gateways: two each, the lowest free pair, so a Gateway that is alone has the
 * same ones after every start.
 */
export interface PortPair {
  readonly cleartext: number;
  readonly tls: number;
}

export class OriginPorts {
  readonly #first: number;
  readonly #places: Map<string, number> = new Map();

  constructor(first: number) {
    this.#first = first;
  }

  of(gateway: string): PortPair {
    let place = this.#places.get(gateway);
    if (place === undefined) {
      const taken = new Set(this.#places.values());
      place = 0;
      while (taken.has(place)) place++;
      this.#places.set(gateway, place);
    }
    const cleartext = this.#first + 2 * place;
    return { cleartext, tls: cleartext + 1 };
  }

  free(gateway: string): void {
    this.#places.delete(gateway);
  }
}
