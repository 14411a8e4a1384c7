/**
 * The serving certificate of this replica for pods: its own, short-lived, and renewed while streams
 * stay open.
 */
import { issueServing, type KeyPair, needsRenewal } from "../../infra/authority.ts";
import type { KubernetesObserver } from "../../kubernetes/observer.ts";

const CHECK_MS = 24 * 60 * 60 * 1000;

export class ServingCertificate {
  readonly #authority: KeyPair;
  readonly #names: readonly string[];
  readonly #now: () => Date;
  #pair: KeyPair | undefined;

  /** The service is `host:port`. */
  constructor(authority: KeyPair, service: string, now: () => Date = () => new Date()) {
    this.#authority = authority;
    this.#names = [service.slice(0, service.lastIndexOf(":"))];
    this.#now = now;
  }

  async issue(): Promise<KeyPair> {
    this.#pair = await issueServing(this.#authority, this.#names, this.#now());
    return this.#pair;
  }

  /** Renews the certificate in the last third of its validity. */
  async renewed(): Promise<KeyPair | undefined> {
    return this.#pair !== undefined && !needsRenewal(this.#pair, this.#now()) ? undefined : this.issue();
  }

  /** Checks once a day; a month is left for failures. */
  keepRenewed(use: (pair: KeyPair) => void, log: KubernetesObserver["log"]): void {
    const look = async (): Promise<void> => {
      try {
        const pair = await this.renewed();
        if (pair !== undefined) use(pair);
      } catch (error) {
        log?.("error", `the certificate of the stream was not renewed: ${(error as Error).message}`);
      }
    };
    setInterval(() => void look(), CHECK_MS).unref();
  }
}
