import { networkInterfaces } from "node:os";
import { canonicalAddress, specialAddress } from "../../kubernetes/special-addresses.ts";

/**
 * What a folder's backends may not be: the admin server of the process that serves it, which would
 * publish everything it knows. All else on this machine is what one has behind a gateway on a
 * laptop.
 */
export class OwnEndpoints {
  readonly #addresses: ReadonlySet<string>;
  #adminPort: number | undefined;

  constructor() {
    const interfaces = Object.values(networkInterfaces()).flatMap((found) => found ?? []);
    this.#addresses = new Set(interfaces.map(({ address }) => canonicalAddress(address)));
  }

  /** Before the first resource comes. */
  reserve(adminPort: number): void {
    this.#adminPort = adminPort;
  }

  readonly refused = (address: string, port: number | undefined): string | undefined => {
    if (port === undefined || port !== this.#adminPort || !this.#isHere(address)) return undefined;
    return `with port ${port} is the admin server of this process`;
  };

  #isHere(address: string): boolean {
    const special = specialAddress(address);
    return (
      special === "loopback" || special === "unspecified" || this.#addresses.has(canonicalAddress(address))
    );
  }
}
