import { isPattern } from "../../plan/hostname.ts";
import { buildState } from "../../view/build-state.ts";
import { describe } from "../../view/merged-state.ts";
import { type HostnameClaim, type HostnameHolders, whoHolds } from "../../view/who-holds.ts";
import { CannotRun, type ExitCode, type Host } from "../foundation/command.ts";
import { linesOf, type Terminal } from "../foundation/terminal.ts";
import type { Target } from "../workspace/cluster-flags.ts";
import { openWorkspace, printReadErrors } from "../workspace/workspace.ts";

export interface WhoOptions {
  readonly hostname: string;
  readonly target: Target;
  readonly json: boolean;
}

export async function printWho({ hostname, target, json }: WhoOptions, host: Host): Promise<ExitCode> {
  const asked = hostname.toLowerCase().replace(/\.$/, "");
  if (!isPattern(asked))
    throw new CannotRun(
      `who: ${JSON.stringify(hostname)} is no hostname`,
      "Name one such as shop.example.com.",
    );
  const workspace = await openWorkspace(target, host.signal);
  printReadErrors(workspace, host.err);
  const found = whoHolds(buildState(workspace), asked);
  host.out.write(json ? `${JSON.stringify(found, null, 2)}\n` : whoText(asked, found, host.out));
  const isHeld = found.some(({ holder }) => holder !== undefined);
  return isHeld && workspace.errors.length === 0 ? 0 : 1;
}

function whoText(hostname: string, found: readonly HostnameHolders[], terminal: Terminal): string {
  if (found.length === 0) return linesOf([`No listener asks for ${hostname}.`]);
  return linesOf(found.flatMap((each) => portLines(hostname, each, terminal)));
}

function portLines(
  hostname: string,
  { gateway, port, protocol, holder, refused, wider }: HostnameHolders,
  { style }: Terminal,
): readonly string[] {
  const head = `${style("bold", `${hostname} on port ${port}`)}  ${style("dim", `${protocol}, ${describe(gateway)}`)}`;
  return [
    head,
    ...(holder === undefined ? [`  ${style("red", "nobody holds it")}`] : holderLines(holder, style)),
    ...refused.flatMap((claim) => refusedLines(claim, style)),
    ...wider.map(
      (claim) => `  ${style("dim", "next")}     ${claimText(claim)}${patternText(claim, hostname)}`,
    ),
  ];
}

function holderLines(claim: HostnameClaim, style: Terminal["style"]): readonly string[] {
  const { state, hostname } = claim.listener;
  const pattern = `as ${hostname === "" ? "a listener for every hostname" : hostname}`;
  const routes =
    claim.routes.length === 0 ? "no route serves it" : `routes: ${claim.routes.map(describe).join(", ")}`;
  return [
    `  ${style("green", "held by")}  ${claimText(claim)}, ${pattern}${state === "serving" ? "" : ` (${state})`}`,
    `           ${routes}`,
  ];
}

function refusedLines(claim: HostnameClaim, style: Terminal["style"]): readonly string[] {
  const { reason, message, decidedBy } = claim.listener;
  const rule = decidedBy === undefined ? "" : ` (${RULE_WORDS[decidedBy]})`;
  return [
    `  ${style("red", "refused")}  ${claimText(claim)}: ${reason ?? ""}${rule}`,
    ...(message === undefined ? [] : [`           ${message}`]),
  ];
}

const RULE_WORDS = {
  gateway: "the Gateway itself comes first",
  age: "the holder is older",
  name: "of one age, the first by namespace/name",
  kind: "of one age and name, the kind decides",
} as const;

function claimText({ owner, listener }: HostnameClaim): string {
  const created = owner.createdAt === undefined ? "" : `, created ${owner.createdAt}`;
  return `${describe(owner)}, listener ${listener.section}${created}`;
}

function patternText({ listener }: HostnameClaim, asked: string): string {
  if (listener.hostname === asked) return "";
  return `, as ${listener.hostname === "" ? "a listener for every hostname" : listener.hostname}`;
}
