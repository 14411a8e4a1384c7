import type { BackendItem, Endpoint } from "../../../plan/backend.ts";

/** Endpoints that are tried when connections fail. */
const MOST_TRIES = 3;

/** Endpoints in the order in which to try them: each request begins with another one. */
export class EndpointTurns {
  readonly #turns: WeakMap<BackendItem, number> = new WeakMap();

  order(backend: BackendItem): readonly Endpoint[] {
    const { endpoints } = backend;
    const turn = (this.#turns.get(backend) ?? 0) % Math.max(1, endpoints.length);
    this.#turns.set(backend, turn + 1);
    return [...endpoints.slice(turn), ...endpoints.slice(0, turn)].slice(0, MOST_TRIES);
  }
}
