import type { CompressionPolicy, Rule } from "../../../../plan/rule.ts";
import { compressionOff, routeCompression } from "../../messages/compression/compressors.ts";
import type { FilterConfigs } from "../../messages/route.ts";
import { COMPRESSION_FILTER } from "../names.ts";

/**
 * The compression of one scope's rules. What most rules have stands once, in the scope, and other
 * routes say otherwise: the compressors of a policy take Envoy 17 KB each time.
 */
export class ScopeCompression {
  /** As text; undefined: no rule of the scope has any. */
  readonly #shared: string | undefined;
  readonly #policies: Map<string, CompressionPolicy> = new Map();

  constructor(rules: Iterable<Rule>) {
    const counts = new Map<string, number>();
    for (const rule of rules) {
      const policy = policyOf(rule);
      if (policy === undefined) continue;
      const key = keyOf(policy);
      this.#policies.set(key, policy);
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    const most = Math.max(...counts.values());
    this.#shared = [...counts].find(([, count]) => count === most)?.[0];
  }

  /** For the routes of a rule. */
  of(rule: Rule): FilterConfigs {
    const policy = policyOf(rule);
    if (policy === undefined) return this.none;
    return keyOf(policy) === this.#shared ? [] : [[COMPRESSION_FILTER, routeCompression(policy)]];
  }

  /** For routes of no rule. */
  get none(): FilterConfigs {
    return this.#shared === undefined ? [] : [[COMPRESSION_FILTER, compressionOff()]];
  }

  /** For the whole scope. */
  get scope(): FilterConfigs {
    const policy = this.#policies.get(this.#shared ?? "");
    return policy === undefined ? [] : [[COMPRESSION_FILTER, routeCompression(policy)]];
  }
}

function policyOf({ action }: Rule): CompressionPolicy | undefined {
  return action.type === "forward" ? action.compression : undefined;
}

function keyOf({ algorithms, minBytes, contentTypes }: CompressionPolicy): string {
  return [minBytes, algorithms.join(), contentTypes.join()].join(" ");
}
