import { readFileSync } from "node:fs";
import { buildState } from "../../view/build-state.ts";
import { readQuestion } from "../../view/explain/asked-request.ts";
import { ClientCertificate, type PeerCertificate } from "../../view/explain/client-certificate.ts";
import { explain } from "../../view/explain/explain.ts";
import { CannotRun, type ExitCode, type Host } from "../foundation/command.ts";
import type { Target } from "../workspace/cluster-flags.ts";
import { openWorkspace, printReadErrors } from "../workspace/workspace.ts";
import { explanationText } from "./explanation-text.ts";

export interface ExplainOptions {
  readonly url: string;
  readonly target: Target;
  readonly method: string;
  readonly header: readonly string[];
  readonly sni: string | undefined;
  readonly gateway: string | undefined;
  /** A PEM file, or `valid` for a certificate that the port accepts. */
  readonly certificate: string | undefined;
  /** The address of the client. */
  readonly client: string | undefined;
  readonly json: boolean;
}

export async function runExplain(options: ExplainOptions, host: Host): Promise<ExitCode> {
  const { url, method, header, sni, gateway, certificate, client } = options;
  const question = readQuestion({
    url,
    method,
    headers: header,
    ...(sni === undefined ? {} : { sni }),
    ...(gateway === undefined ? {} : { gateway }),
    ...(certificate === undefined ? {} : { certificate: readCertificate(certificate) }),
    ...(client === undefined ? {} : { client }),
  });
  if ("problem" in question) throw new CannotRun(`explain: ${question.problem}`, question.remedy);
  const workspace = await openWorkspace(options.target, host.signal);
  printReadErrors(workspace, host.err);
  const explanation = explain(workspace.table, buildState(workspace), question);
  host.out.write(
    options.json ? `${JSON.stringify(explanation, null, 2)}\n` : explanationText(url, explanation, host.out),
  );
  return 0;
}

function readCertificate(source: string): PeerCertificate {
  if (source === "valid") return "valid";
  try {
    return new ClientCertificate(readFileSync(source, "utf8"));
  } catch (error) {
    throw new CannotRun(
      `explain: the client certificate ${source} cannot be used: ${(error as Error).message}`,
      "Name a PEM file with the certificate, or write --client-cert alone for one that is valid.",
    );
  }
}
