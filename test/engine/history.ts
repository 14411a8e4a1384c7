/**
 * Playing a random history into an engine, with a mirror that knows only the deltas, as a data
 * plane and a status writer do.
 */

import { stringify } from "yaml";
import { type Key, keyOf } from "../../src/api/key.ts";
import type { Resource } from "../../src/api/resource.ts";
import { Engine, type EngineDelta } from "../../src/engine/engine.ts";
import type { EngineSettings } from "../../src/engine/foundation/settings.ts";
import type { ObjectVerdict } from "../../src/engine/verdicts/verdicts.ts";
import { PrivateKey } from "../../src/plan/certificate.ts";
import type { ItemReport } from "../../src/plan/item-report.ts";
import type { PlanItem } from "../../src/plan/plan.ts";
import type { Change } from "./random-resources.ts";
import { TEST_SETTINGS } from "./settings.ts";

/** Reading X.509 is tested elsewhere; here a certificate is a word. */
const SETTINGS: EngineSettings = {
  ...TEST_SETTINGS,
  portRange: { from: 50_000, to: 50_003 },
  readKeyPair: (certificate, key) =>
    certificate === "broken"
      ? { problem: "tls.crt holds no PEM certificate" }
      : {
          chain: certificate,
          key: new PrivateKey(key),
          names: [certificate],
          notAfter: "2036-01-01T00:00:00Z",
        },
  readAuthorities: (bundle) =>
    bundle === "broken" ? { problem: "ca.crt holds no PEM certificate" } : { pem: bundle },
};

export class Player {
  readonly engine: Engine;
  readonly resources: Map<Key, Resource> = new Map();
  readonly plan: Map<string, PlanItem> = new Map();
  readonly verdicts: Map<Key, ObjectVerdict> = new Map();
  readonly reports: Map<string, ItemReport> = new Map();

  constructor(settings: Partial<EngineSettings> = {}) {
    this.engine = new Engine({ ...SETTINGS, ...settings });
  }

  play(changes: readonly Change[]): EngineDelta {
    for (const { key, resource } of changes) {
      if (resource === undefined) this.resources.delete(key);
      else this.resources.set(key, resource);
    }
    const delta = this.engine.apply(changes);
    this.#mirror(delta);
    return delta;
  }

  /**
   * What a data plane would say of the items that it has just been given: most it takes, some it
   * rejects.
   */
  confirm({ plan: { upserts, removes } }: EngineDelta): void {
    const reports = upserts.map(
      ({ id }): ItemReport => ({ id, state: id.length % 5 === 0 ? "rejected" : "programmed" }),
    );
    for (const report of reports) this.reports.set(report.id, report);
    for (const id of removes) this.reports.delete(id);
    this.#mirror(this.engine.learn({ reports, forgotten: removes }));
  }

  learn(reports: ReadonlyMap<string, ItemReport>): void {
    this.#mirror(this.engine.learn({ reports: [...reports.values()] }));
  }

  /** Its infrastructure has a problem with something, and one of its pods lags. */
  learnOfGateway(gateway: Key, something: string, pod: string): void {
    const problem = { reason: "NameTaken", message: `${something} is in the way` };
    this.#mirror(
      this.engine.learn({
        infrastructure: new Map([[gateway, { addresses: [], problem }]]),
        replicas: new Map([[gateway, { replicas: 2, lagging: [pod] }]]),
      }),
    );
  }

  #mirror(delta: EngineDelta): void {
    for (const item of delta.plan.upserts) this.plan.set(item.id, item);
    for (const id of delta.plan.removes) this.plan.delete(id);
    for (const [key, verdict] of delta.verdicts) {
      if (verdict === undefined) this.verdicts.delete(key);
      else this.verdicts.set(key, verdict);
    }
  }

  /** Everything that the engine says, in an order of its own. */
  answer(): unknown {
    return {
      plan: Object.fromEntries([...this.plan].sort(byKey)),
      verdicts: Object.fromEntries([...this.verdicts].sort(byKey)),
    };
  }

  /** The same from the engine's own tables instead of the deltas. */
  tables(): unknown {
    return {
      plan: Object.fromEntries([...this.engine.plan()].map((item) => [item.id, item] as const).sort(byKey)),
      verdicts: Object.fromEntries([...this.engine.verdicts()].sort(byKey)),
    };
  }
}

function byKey(a: readonly [string, unknown], b: readonly [string, unknown]): number {
  return a[0] < b[0] ? -1 : 1;
}

/** A failing history as one would tell it. */
export function tell(steps: readonly (readonly Change[])[]): string {
  return steps
    .map((changes, step) =>
      changes
        .map(({ key, resource }) =>
          resource === undefined ? `step ${step}: delete ${key}` : `step ${step}: apply\n${indent(resource)}`,
        )
        .join("\n"),
    )
    .join("\n");
}

function indent(resource: Resource): string {
  return stringify(
    { key: keyOf(resource), ...resource },
    { lineWidth: 0, flowCollectionPadding: false },
  ).replace(/^/gm, "    ");
}
