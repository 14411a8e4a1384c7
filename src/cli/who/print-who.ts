import { isPattern } from "../../plan/hostname.ts";
import { describe } from "../../view/merged-state.ts";
import { type HostnameClaim, type HostnameHolders, whoHolds } from "../../view/who-holds.ts";
import { claimLines, readClaims } from "../claims/read-claims.ts";
import { CannotRun, type ExitCode, type Host } from "../foundation/command.ts";
import { linesOf, type Terminal } from "../foundation/terminal.ts";
import type { ClusterFlags, Target } from "../workspace/cluster-flags.ts";
import { openWorkspace, printReadErrors, stateFor } from "../workspace/workspace.ts";

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
  const found = whoHolds(stateFor(workspace), asked);
  host.out.write(
    json
      ? `${JSON.stringify(found, null, 2)}\n`
      : whoText(asked, found, { terminal: host.out, isPart: workspace.scope?.sees === "part" }),
  );
  if (!json && target.paths === undefined) host.out.write(await claimsText(asked, target.cluster, host));
  const isHeld = found.some(({ holder }) => holder !== undefined);
  return isHeld && workspace.errors.length === 0 ? 0 : 1;
}

/** What the cluster has written down of it, where a TenantPolicy holds claims. */
async function claimsText(hostname: string, cluster: ClusterFlags, { out, signal }: Host): Promise<string> {
  const { connect } = await import("../workspace/read-cluster.ts");
  const claims = await readClaims(await connect(cluster), signal, cluster.namespace);
  return linesOf(
    claims
      .filter((each) => each.hostname === hostname)
      .flatMap((each) => [
        `${out.style("bold", `claim at Gateway ${each.gateway}`)}  ${out.style("dim", `reference ${each.claim.reference}`)}`,
        ...claimLines(each),
      ]),
  );
}

interface Shown {
  readonly terminal: Terminal;
  /** Only a part of the cluster may be read: whoever holds the name may be out of sight. */
  readonly isPart: boolean;
}

function whoText(hostname: string, found: readonly HostnameHolders[], shown: Shown): string {
  if (found.length === 0) return linesOf([`No listener asks for ${hostname}.`]);
  return linesOf(found.flatMap((each) => portLines(hostname, each, shown)));
}

function portLines(
  hostname: string,
  { gateway, port, protocol, holder, refused, wider }: HostnameHolders,
  { terminal: { style }, isPart }: Shown,
): readonly string[] {
  const isOthers = isPart && refused.some(({ listener: { state } }) => state === "conflicted");
  const head = `${style("bold", `${hostname} on port ${port}`)}  ${style("dim", `${protocol}, ${describe(gateway)}`)}`;
  return [
    head,
    ...(holder === undefined
      ? [`  ${isOthers ? style("yellow", "another team holds it") : style("red", "nobody holds it")}`]
      : holderLines(holder, style)),
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
