/**
 * What the cases must show: every line of the documents' condition tables, every scenario of
 * GEP-1713, Conformance Details, and every decided corner.
 */
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { readCase } from "./case-file.ts";

const FOLDER = new URL("cases/", import.meta.url);
const cases = readdirSync(FOLDER).map((file) => readCase(new URL(file, FOLDER).pathname));

type Conditions = string | readonly string[];
interface Status {
  readonly conditions?: readonly string[];
  readonly attachedListenerSets?: number;
  readonly listeners?: Readonly<Record<string, Conditions>>;
}

/**
 * `ListenerSet Accepted=False NotAllowed` and `ListenerSet/entry Conflicted=True HostnameConflict`
 * for all that the cases expect.
 */
function shownConditions(): Set<string> {
  const shown = new Set<string>();
  for (const { expected } of cases) {
    const { status } = parse(expected ?? "") as { status: Readonly<Record<string, Status>> };
    for (const [object, { conditions, listeners, attachedListenerSets }] of Object.entries(status)) {
      const kind = object.split(" ")[0];
      for (const condition of conditions ?? []) shown.add(`${kind} ${short(condition)}`);
      for (const own of Object.values(listeners ?? {})) {
        for (const condition of typeof own === "string" ? own.split("; ") : own)
          shown.add(`${kind}/entry ${short(condition)}`);
      }
      if (attachedListenerSets !== undefined)
        shown.add(`${kind} attachedListenerSets ${attachedListenerSets}`);
    }
  }
  return shown;
}

function short(condition: string): string {
  return condition.split(":")[0] ?? "";
}

const SET_LINES: readonly string[] = [
  "Accepted=True Accepted",
  "Accepted=False NotAllowed",
  "Accepted=False ParentNotAccepted",
  "Accepted=False ListenersNotValid",
  "Programmed=True Programmed",
  "Programmed=False ListenersNotValid",
  "Programmed=False NotAllowed",
];
const ENTRY_LINES: readonly string[] = [
  "Accepted=True Accepted",
  "Accepted=False HostnameConflict",
  "Accepted=False TooManyListeners",
  "Programmed=True Programmed",
  "Conflicted=True HostnameConflict",
  "Conflicted=False NoConflicts",
  "ResolvedRefs=True ResolvedRefs",
  "ResolvedRefs=False RefNotPermitted",
];

/** By document: the lines of its condition tables, or of its prose about conditions. */
const TABLES: Readonly<Record<string, readonly string[]>> = {
  "GEP-1713": [
    ...SET_LINES.map((line) => `ListenerSet ${line}`),
    ...ENTRY_LINES.map((line) => `ListenerSet/entry ${line}`),
    "ListenerSet/entry Accepted=False ProtocolConflict",
    "ListenerSet/entry Programmed=False HostnameConflict",
    "ListenerSet/entry Programmed=False ProtocolConflict",
    "ListenerSet/entry Conflicted=True ProtocolConflict",
    "Gateway attachedListenerSets 0",
    "Gateway attachedListenerSets 1",
    "Gateway attachedListenerSets 2",
  ],
  "GEP-1713 (provisional)": [
    "Gateway Accepted=True Accepted",
    "Gateway Accepted=True ListenersNotValid",
    "Gateway Accepted=False ListenersNotValid",
    "Gateway Accepted=False UnsupportedAddress",
    "Gateway Accepted=False ParentNotAccepted",
    "Gateway Accepted=False NotAllowed",
    "Gateway Programmed=True Programmed",
    "Gateway/entry Conflicted=True HostnameConflict",
  ],
  "GEP-1713 (experimental)": [
    ...SET_LINES.map((line) => `XListenerSet ${line}`),
    ...ENTRY_LINES.map((line) => `XListenerSet/entry ${line}`),
    "XListenerSet/entry Accepted=False PortUnavailable",
    "Gateway AttachedListenerSets=True ListenersAttached",
    "Gateway AttachedListenerSets=False NoListenersAttached",
    "Gateway AttachedListenerSets=Unknown NotConfigured",
  ],
  "cloudflare-tunnel-gateway-controller, ListenerSet": [
    ...SET_LINES.filter((line) => !line.includes("ParentNotAccepted")).map((line) => `ListenerSet ${line}`),
    "ListenerSet Programmed=False Pending",
    "ListenerSet/entry Accepted=False ProtocolConflict",
    "ListenerSet/entry ResolvedRefs=False InvalidCertificateRef",
  ],
};

describe("golden cases cover", () => {
  const shown = shownConditions();

  it.each(Object.entries(TABLES))("every condition of %s", (document, lines) => {
    expect(lines.filter((line) => !shown.has(line))).toEqual([]);
    expect(cases.some(({ header }) => header.clause.startsWith(`${document}, `))).toBe(true);
  });

  it("every scenario of GEP-1713, Conformance Details, once each", () => {
    const scenarios = cases.flatMap(
      ({ header }) => /^GEP-1713, Conformance Details, scenario (\d+)$/.exec(header.clause)?.[1] ?? [],
    );
    expect(scenarios.map(Number).sort((a, b) => a - b)).toEqual(Array.from({ length: 19 }, (_, i) => i + 1));
  });

  it("every decided corner, and the document names each", () => {
    const text = readFileSync(new URL("../../docs/reference/decided-corners.md", import.meta.url), "utf8");
    const named = [...text.matchAll(/`(corner-[a-z-]+)` *\|$/gm)].map(([, name]) => name);
    const marked = cases.filter(({ header }) => header.corner).map(({ header }) => header.case);
    expect(named.toSorted()).toEqual(marked.toSorted());
  });
});
