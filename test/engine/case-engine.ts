import { keyOf } from "../../src/api/key.ts";
import { Engine } from "../../src/engine/engine.ts";
import type { Case } from "./case-file.ts";
import { TEST_SETTINGS } from "./settings.ts";

/** An engine that has the resources and facts of a golden case. */
export function engineOf({ header, resources }: Pick<Case, "header" | "resources">): Engine {
  const { features, dataPlanes, ...settings } = header.settings ?? {};
  const engine = new Engine({
    ...TEST_SETTINGS,
    ...settings,
    ...(features === undefined ? {} : { features: new Set(features) }),
    ...(dataPlanes === undefined
      ? {}
      : {
          dataPlanes: Object.fromEntries(
            Object.entries(dataPlanes).map(([name, served]) => [name, new Set(served)]),
          ),
        }),
  });
  engine.learn({
    infrastructure: new Map(Object.entries(header.facts?.infrastructure ?? {})),
    reports: header.facts?.reports ?? [],
    replicas: new Map(Object.entries(header.facts?.replicas ?? {})),
  });
  engine.apply(resources.map((resource) => ({ key: keyOf(resource), resource })));
  return engine;
}
