import type { TenantBudget } from "./tenant-budgets.ts";

/**
 * Where bytes of a request wait: `body` are those of the client for the backend, `answer` those of
 * the backend for the client, `compressor` what their compression needs.
 */
export type BufferedPart = "body" | "answer" | "compressor";

/**
 * The bytes of one request that wait in memory, counted for its tenant. They count while the side
 * that is to take them does not; what flows is not counted.
 */
export class BufferedBytes {
  readonly #budget: TenantBudget;
  readonly #parts: Record<BufferedPart, number> = { body: 0, answer: 0, compressor: 0 };
  #released = false;

  constructor(budget: TenantBudget) {
    this.#budget = budget;
  }

  /** The tenant has as much waiting as it may have. */
  get isFull(): boolean {
    return this.#budget.isFull;
  }

  /** Says how many bytes wait there now. */
  set(part: BufferedPart, bytes: number): void {
    if (this.#released || bytes === this.#parts[part]) return;
    this.#budget.addBuffered(bytes - this.#parts[part]);
    this.#parts[part] = bytes;
  }

  /** False: the tenant's memory is for bodies first. */
  takeCompressor(bytes: number): boolean {
    if (!this.#budget.hasRoomFor(bytes)) return false;
    this.set("compressor", bytes);
    return true;
  }

  /** The request is over. */
  release(): void {
    this.set("body", 0);
    this.set("answer", 0);
    this.set("compressor", 0);
    this.#released = true;
  }
}
