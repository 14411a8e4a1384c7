import { withCredentials, withPlainCredentials } from "../../../plan/authentication.ts";
import { type CertificateItem, PrivateKey } from "../../../plan/certificate.ts";
import type { GuardItem } from "../../../plan/guard.ts";
import type { PlanDelta, PlanItem } from "../../../plan/plan.ts";

/** A delta in the form that can be posted to a worker thread, which knows no classes. */
export interface TransferDelta {
  readonly upserts: readonly TransferItem[];
  readonly removes: readonly string[];
}

type TransferItem = Exclude<PlanItem, CertificateItem | GuardItem> | TransferCertificate | TransferGuard;
type TransferCertificate = Omit<CertificateItem, "key"> & { readonly key: string };
type TransferGuard = Omit<GuardItem, "check"> & { readonly check: object };

/** The one place where keys and credentials are shown: to a thread of this same process. */
export function toTransfer(delta: PlanDelta): TransferDelta {
  return { upserts: delta.upserts.map(shown), removes: delta.removes };
}

export function fromTransfer(delta: TransferDelta): PlanDelta {
  return { upserts: delta.upserts.map(hidden), removes: delta.removes };
}

function shown(item: PlanItem): TransferItem {
  if (item.type === "certificate") return { ...item, key: item.key.reveal() };
  return item.type === "guard" ? { ...item, check: withPlainCredentials(item.check) } : item;
}

function hidden(item: TransferItem): PlanItem {
  if (item.type === "certificate") return { ...item, key: new PrivateKey(item.key) };
  return item.type === "guard" ? { ...item, check: withCredentials(item.check as GuardItem["check"]) } : item;
}
