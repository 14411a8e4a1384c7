/** Every Secret that a listener names, the most urgent first. */
import type { Outline, OutlineListener, OutlineOwner } from "../../view/outline.ts";
import { hasWords, wordsOf } from "./filter.ts";

export interface CertificateUse {
  readonly owner: OutlineOwner;
  readonly listener: OutlineListener;
  readonly isForHostname: boolean;
}

export interface CertificateRow {
  /** `namespace/name` */
  readonly secret: string;
  readonly names: readonly string[];
  readonly notAfter: string | undefined;
  /** Undefined where it cannot be read. */
  readonly daysLeft: number | undefined;
  readonly problem: string | undefined;
  readonly uses: readonly CertificateUse[];
}

export type RenewalUrgency = "bad" | "soon" | "good";

export const SOON_DAYS = 30;

export function certificateRows({ gateways, orphans }: Outline, now: number): readonly CertificateRow[] {
  const rows = new Map<string, CertificateRow & { readonly uses: CertificateUse[] }>();
  for (const owner of [...gateways.flatMap(({ owners }) => owners), ...orphans]) {
    for (const listener of owner.listeners) {
      for (const { secret, names, notAfter, problem, isForHostname } of listener.certificates) {
        let row = rows.get(secret);
        if (row === undefined) {
          const daysLeft = notAfter === undefined ? undefined : (Date.parse(notAfter) - now) / 86_400_000;
          row = { secret, names, notAfter, daysLeft, problem, uses: [] };
          rows.set(secret, row);
        }
        row.uses.push({ owner, listener, isForHostname });
      }
    }
  }
  const order: readonly RenewalUrgency[] = ["bad", "soon", "good"];
  return [...rows.values()].sort(
    (a, b) =>
      order.indexOf(renewalUrgencyOf(a)) - order.indexOf(renewalUrgencyOf(b)) ||
      (a.daysLeft ?? 0) - (b.daysLeft ?? 0) ||
      (a.secret < b.secret ? -1 : 1),
  );
}

export function renewalUrgencyOf({ problem, daysLeft, uses }: CertificateRow): RenewalUrgency {
  if (problem !== undefined || daysLeft === undefined || daysLeft < 0) return "bad";
  if (uses.some(({ isForHostname }) => !isForHostname)) return "bad";
  return daysLeft < SOON_DAYS ? "soon" : "good";
}

export function findCertificates(rows: readonly CertificateRow[], search: string): readonly CertificateRow[] {
  const words = wordsOf(search);
  if (words.length === 0) return rows;
  return rows.filter(({ secret, names, problem, uses }) => {
    const users = uses.map(
      ({ owner, listener }) => `${owner.kind} ${owner.namespace}/${owner.name} ${listener.hostname}`,
    );
    return hasWords([secret, ...names, problem ?? "", ...users].join(" "), words);
  });
}
