import type { BackendShare, CandidateListener } from "../../matching/explain/explanation.ts";
import type { RuleOrigin } from "../../plan/rule.ts";
import type { FullExplanation } from "../../view/explain/full-explanation.ts";
import type { EliminatedCandidate } from "../../view/explain/refused-candidates.ts";
import { linesOf, type Terminal } from "../foundation/terminal.ts";
import { columns } from "../foundation/text-table.ts";
import { policyRows } from "./policy-rows.ts";

const MAX_ELIMINATED = 30;

export function explanationText(url: string, explanation: FullExplanation, terminal: Terminal): string {
  const { style } = terminal;
  const { steps, eliminated, backends } = explanation;
  const policies = policyRows(explanation.policy);
  const shown = byRelevance(eliminated).slice(0, MAX_ELIMINATED);
  const left = eliminated.length - shown.length;
  const rest = left === 0 ? [] : [`  … and ${left} more; --json lists them all`];
  const indented = (rows: readonly (readonly string[])[]): string[] =>
    columns(rows).map((line) => `  ${line}`);
  return linesOf([
    `${style("bold", url)}  ${headline(explanation, terminal)}`,
    "",
    style("bold", "How"),
    ...indented(steps.map(({ at, text }) => [at, text])),
    ...(policies.length === 0 ? [] : ["", style("bold", "Policy"), ...indented(policies)]),
    ...(backends.length === 0 ? [] : ["", style("bold", "Backends"), ...indented(backends.map(backendRow))]),
    ...(eliminated.length === 0
      ? []
      : ["", style("bold", "Why not the others"), ...indented(shown.map(eliminatedRow)), ...rest]),
  ]);
}

/** Candidates of another hostname or port come last: a shared Gateway has thousands of them. */
function byRelevance(eliminated: readonly EliminatedCandidate[]): EliminatedCandidate[] {
  const isFar = ({ rule }: EliminatedCandidate): number => (rule === "hostname" || rule === "port" ? 1 : 0);
  return eliminated.toSorted((a, b) => isFar(a) - isFar(b));
}

function headline({ outcome, status, location, backends }: FullExplanation, { style }: Terminal): string {
  switch (outcome) {
    case "forward":
      return style(
        "green",
        `goes to ${backends
          .filter(({ share }) => share > 0)
          .map(backendName)
          .join(" or ")}`,
      );
    case "respond":
      return style(
        (status ?? 500) < 400 ? "green" : "yellow",
        `is answered with ${status}${location === undefined ? "" : `, Location: ${location}`}`,
      );
    case "refuse":
      return style("red", "is refused: there is no answer");
  }
}

function backendName({ namespace, name, port }: BackendShare): string {
  return name === undefined ? "an invalid reference" : `Service ${namespace}/${name}:${port}`;
}

function backendRow(backend: BackendShare): string[] {
  const endpoints = backend.endpoints.map(({ address, port }) => `${address}:${port}`);
  const shown = endpoints.length > 4 ? [...endpoints.slice(0, 4), `… ${endpoints.length} in all`] : endpoints;
  return [
    `${Math.round(backend.share * 1000) / 10} %`,
    backendName(backend),
    backend.status === undefined ? shown.join(", ") : `answered with ${backend.status}`,
  ];
}

function eliminatedRow({ listener, route, rule, reason }: EliminatedCandidate): string[] {
  return [
    rule,
    [listener && listenerName(listener), route && routeName(route)].filter(Boolean).join(", "),
    reason,
  ];
}

function listenerName({ kind, namespace, name, section }: CandidateListener): string {
  return `${kind} ${namespace}/${name} (${section})`;
}

function routeName(route: Pick<RuleOrigin, "kind" | "namespace" | "name"> & Partial<RuleOrigin>): string {
  const { kind, namespace, name, rule } = route;
  return `${kind} ${namespace}/${name}${rule === undefined ? "" : ` rule ${rule}`}`;
}
