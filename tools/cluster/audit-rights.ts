/**
 * Which rights a run of the controller used, read off the API server's audit log (level Metadata is
 * enough), and how that compares to the table of rights.
 *
 *     node tools/cluster/audit-rights.ts AUDIT_LOG [NAMESPACE [ACCOUNT]]
 *
 * Ends with 1 when a request was refused, needed a right that is not in the table, or when a right
 * of the table was never used.
 */
import { readFile } from "node:fs/promises";
import { expandRights, type Right, rightText } from "../../test/chart/rights.ts";

export interface AuditEvent {
  readonly stage?: string;
  readonly verb?: string;
  readonly user?: { readonly username?: string };
  readonly objectRef?: {
    readonly resource?: string;
    readonly subresource?: string;
    readonly apiGroup?: string;
    readonly namespace?: string;
    readonly name?: string;
  };
  readonly responseStatus?: { readonly code?: number };
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface RightsReport {
  readonly requests: number;
  /** Requests that the API server refused, each once. */
  readonly refused: readonly string[];
  /** Requests that no right of the table is for, each once. */
  readonly missing: readonly string[];
  /** Rights of the table that no request was made of. */
  readonly unused: readonly string[];
}

export interface Account {
  readonly namespace: string;
  readonly name: string;
}

export class RightsUse {
  readonly #account: Account;
  readonly #rights: readonly Right[];
  readonly #used = new Set<string>();
  readonly #refused = new Set<string>();
  readonly #missing = new Set<string>();
  #requests = 0;

  constructor(account: Account, rights: readonly Right[] = expandRights()) {
    this.#account = account;
    this.#rights = rights;
  }

  take(event: AuditEvent): void {
    const { objectRef, verb, user, responseStatus } = event;
    const { namespace, name } = this.#account;
    if (user?.username !== `system:serviceaccount:${namespace}:${name}`) return;
    // Watches answer twice: when they start and when they end. Requests that name no object are
    // discovery, which everybody may do.
    if (event.stage === "RequestReceived" || objectRef?.resource === undefined || verb === undefined) return;
    this.#requests++;
    // Server-side apply of an object that was not there is a creation too, and is checked as one.
    const verbs = verb === "patch" && responseStatus?.code === 201 ? ["patch", "create"] : [verb];
    for (const each of verbs) this.#note(each, event);
  }

  report(): RightsReport {
    const unused = this.#rights.filter((right) => right.unseen !== true).map(rightText);
    return {
      requests: this.#requests,
      refused: [...this.#refused].sort(),
      missing: [...this.#missing].sort(),
      unused: [...new Set(unused)].filter((text) => !this.#used.has(text)).sort(),
    };
  }

  #note(verb: string, { objectRef = {}, responseStatus, annotations = {} }: AuditEvent): void {
    const { resource = "", subresource, apiGroup = "", namespace = "", name } = objectRef;
    const full = subresource === undefined ? resource : `${resource}/${subresource}`;
    const text = `${verb} ${full}${apiGroup === "" ? "" : ` of ${apiGroup}`}`;
    // A right that was there is of no use in a namespace that is being deleted: that is 403, too.
    const isPermitted = annotations["authorization.k8s.io/decision"] === "allow";
    if (responseStatus?.code === 403 && !isPermitted)
      this.#refused.add(`${text} in ${namespace || "the cluster"}`);
    const fitting = this.#rights.filter(
      (right) =>
        right.group === apiGroup &&
        right.resource === full &&
        right.verb === verb &&
        (right.name === undefined || right.name === name) &&
        (right.scope !== "own" || namespace === this.#account.namespace),
    );
    // The narrowest right that is enough is the one that was needed.
    const needed = fitting.find(({ scope }) => scope === "own") ?? fitting[0];
    if (needed === undefined) this.#missing.add(text);
    else this.#used.add(rightText(needed));
  }
}

const CONTROLLER: Account = { namespace: "mergeway-system", name: "mergeway" };

/** The rights that were used so far, by the audit log of a cluster that may still be writing it. */
export async function rightsUsed(file: string, account: Account = CONTROLLER): Promise<RightsReport> {
  const use = new RightsUse(account);
  const lines = (await readFile(file, "utf8")).split("\n");
  // The last one may not be whole.
  for (const line of lines.slice(0, -1)) if (line !== "") use.take(JSON.parse(line) as AuditEvent);
  return use.report();
}

async function main(
  file: string | undefined,
  namespace = CONTROLLER.namespace,
  name = CONTROLLER.name,
): Promise<number> {
  if (file === undefined) {
    console.error("say which log: node tools/cluster/audit-rights.ts AUDIT_LOG [NAMESPACE [ACCOUNT]]");
    return 2;
  }
  const { requests, refused, missing, unused } = await rightsUsed(file, { namespace, name });
  console.log(`${requests} requests of ${namespace}/${name}`);
  for (const [title, lines] of Object.entries({ refused, missing, unused })) {
    console.log(`${title}: ${lines.length === 0 ? "none" : `\n  ${lines.join("\n  ")}`}`);
  }
  return requests > 0 && refused.length + missing.length + unused.length === 0 ? 0 : 1;
}

if (import.meta.main)
  process.exitCode = await main(...(process.argv.slice(2) as [string?, string?, string?]));
