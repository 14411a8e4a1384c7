import { CannotRun, type ExitCode, type Host } from "../foundation/command.ts";
import { linesOf } from "../foundation/terminal.ts";
import type { ClusterFlags } from "../workspace/cluster-flags.ts";
import { connect } from "../workspace/read-cluster.ts";
import { claimLines, readClaims } from "./read-claims.ts";

export interface ResolveOptions {
  readonly reference: string;
  readonly cluster: ClusterFlags;
  readonly json: boolean;
}

export async function resolveReference(
  { reference, cluster, json }: ResolveOptions,
  host: Host,
): Promise<ExitCode> {
  const asked = reference.trim().toLowerCase();
  if (!/^[0-9a-f]{16}$/.test(asked))
    throw new CannotRun(
      `resolve: ${JSON.stringify(reference)} is no reference`,
      "Copy the 16 digits and letters behind the word reference.",
    );
  const client = await connect(cluster);
  const claims = await readClaims(client, host.signal, cluster.namespace);
  const found = claims.filter(({ claim }) => claim.reference === asked);
  if (json) host.out.write(`${JSON.stringify(found, null, 2)}\n`);
  else if (found.length === 0)
    host.out.write(linesOf([`No HostnameClaims that you may read have the reference ${asked}.`]));
  else
    host.out.write(
      linesOf(
        found.flatMap((each) => [
          host.out.style("bold", `${each.hostname} at Gateway ${each.gateway}`),
          ...claimLines(each),
        ]),
      ),
    );
  return found.length === 0 ? 1 : 0;
}
