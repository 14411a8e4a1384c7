/** From what a person asks to the request that the data plane would see. */
import { isAuthority, parseTarget } from "../../dataplanes/embedded/message/request-target.ts";
import type { ExplainedRequest } from "../../matching/explain/explanation.ts";
import { parseAddress } from "../../matching/networks.ts";
import type { PeerCertificate } from "./client-certificate.ts";

export interface Question {
  readonly url: string;
  readonly method: string;
  /** `Name: value`; Host replaces the URL's. */
  readonly headers: readonly string[];
  /** Empty for none. */
  readonly sni?: string;
  /** `namespace/name` */
  readonly gateway?: string;
  readonly certificate?: PeerCertificate;
  /** The address of the client. */
  readonly client?: string;
}

export interface AskedRequest {
  readonly request: Omit<ExplainedRequest, "clientCertificate" | "port"> & { readonly port: number };
  readonly certificate: PeerCertificate | undefined;
}

/** Why a question cannot be asked. */
export interface Misunderstood {
  readonly problem: string;
  readonly remedy: string;
}

const SCHEMES = ["http", "https", "tls", "tcp", "udp"] as const;
type Scheme = (typeof SCHEMES)[number];

const DEFAULT_PORTS: Readonly<Partial<Record<Scheme, number>>> = { http: 80, https: 443, tls: 443 };

/** The host is taken as it stands: URL parsers would mend what a data plane must judge. */
export function readQuestion(question: Question): AskedRequest | Misunderstood {
  const parts = /^([a-z]+):\/\/([^/?#]*)([^#]*)$/i.exec(question.url);
  const scheme = parts?.[1]?.toLowerCase() as Scheme;
  if (parts === null || !SCHEMES.includes(scheme)) {
    return {
      problem: `${JSON.stringify(question.url)} is not a URL that can be asked about`,
      remedy: `Write ${SCHEMES.join("://…, ")}://… with a host and, if need be, a port and a path.`,
    };
  }
  const [, , authority = "", rest = ""] = parts;
  if (!isAuthority(authority)) {
    const remedy = "Write a host name or address, with or without a port.";
    return { problem: `${JSON.stringify(authority)} is not a host`, remedy };
  }
  const port = Number(/:(\d+)$/.exec(authority)?.[1] ?? DEFAULT_PORTS[scheme] ?? 0);
  if (port < 1 || port > 65_535) {
    return { problem: `${question.url} has no port`, remedy: `Name the port: ${scheme}://HOST:PORT.` };
  }
  const target = parseTarget(rest.startsWith("/") ? rest : `/${rest}`);
  if ("invalid" in target) {
    return { problem: target.invalid, remedy: "The data plane would answer such a request with 400." };
  }
  const headers = question.headers.map(readHeader);
  const bad = headers.indexOf(undefined);
  if (bad >= 0) {
    return {
      problem: `${JSON.stringify(question.headers[bad])} is not a header`,
      remedy: "Write 'Name: value'.",
    };
  }
  const { client } = question;
  if (client !== undefined && parseAddress(client) === undefined) {
    return {
      problem: `${JSON.stringify(client)} is not an address of a client`,
      remedy: "Write an IPv4 or IPv6 address, without a port.",
    };
  }
  const fields = headers.filter((header) => header !== undefined);
  return {
    request: {
      port,
      ...(question.gateway === undefined ? {} : { gateway: question.gateway }),
      scheme,
      authority: fields.find(([name]) => name === "host")?.[1] ?? authority,
      // The name that a client asks for comes from the URL, whatever its Host header says.
      sni: question.sni ?? authority.replace(/:\d+$/, ""),
      method: question.method,
      path: target.path,
      query: target.query,
      headers: fields.filter(([name]) => name !== "host"),
      ...(client === undefined ? {} : { client }),
    },
    certificate: question.certificate,
  };
}

function readHeader(text: string): readonly [name: string, value: string] | undefined {
  const colon = text.indexOf(":");
  const name = text.slice(0, Math.max(colon, 0)).trim().toLowerCase();
  return /^[a-z0-9!#$%&'*+.^_`|~-]+$/.test(name) ? [name, text.slice(colon + 1).trim()] : undefined;
}
