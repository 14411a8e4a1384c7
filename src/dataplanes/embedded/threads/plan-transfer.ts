import { type CertificateItem, PrivateKey } from "../../../plan/certificate.ts";
import type { PlanDelta, PlanItem } from "../../../plan/plan.ts";

/** A delta in the form that can be posted to a worker thread, which knows no classes. */
export interface TransferDelta {
  readonly upserts: readonly TransferItem[];
  readonly removes: readonly string[];
}

type TransferItem = Exclude<PlanItem, CertificateItem> | TransferCertificate;
type TransferCertificate = Omit<CertificateItem, "key"> & { readonly key: string };

/** The one place where keys are shown: to a thread of this same process. */
export function toTransfer(delta: PlanDelta): TransferDelta {
  const upserts = delta.upserts.map((item) =>
    item.type === "certificate" ? { ...item, key: item.key.reveal() } : item,
  );
  return { upserts, removes: delta.removes };
}

export function fromTransfer(delta: TransferDelta): PlanDelta {
  const upserts = delta.upserts.map((item) =>
    item.type === "certificate" ? { ...item, key: new PrivateKey(item.key) } : item,
  );
  return { upserts, removes: delta.removes };
}
