/**
 * cloudflared's reading of an ingress document, for the doubles: what it takes, and which rule
 * serves a request.
 */
import { RE2JS } from "re2js";
import type {
  IngressRule,
  TunnelConfiguration,
} from "../../../../src/dataplanes/tunnel/cloudflare/tunnel-configuration.ts";

/** Why cloudflared would not take the document. */
export function configurationProblem({ ingress }: TunnelConfiguration): string | undefined {
  const rules = ingress ?? [];
  if (rules.length > 1_000) return "too many rules";
  for (const [index, rule] of rules.entries()) {
    const last = index === rules.length - 1;
    const all = matchesEveryHost(rule) && !rule.path;
    if (last && !all) return "the last rule must match everything";
    if (!last && all) return `rule ${index + 1} matches everything, and others follow`;
    const host = rule.hostname ?? "";
    if (host.includes(":")) return "a hostname with a port";
    if (host.lastIndexOf("*") > 0) return "a wildcard that does not lead";
    if (host.startsWith("*") && host !== "*" && !host.startsWith("*.")) return "a wildcard that is no label";
    const problem = serviceProblem(rule.service) ?? expressionProblem(rule.path);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function serviceProblem(service: string): string | undefined {
  if (/^http_status:[1-5]\d\d$/.test(service) || service === "hello_world") return undefined;
  try {
    const { protocol, pathname, host } = new URL(service);
    if (!/^(https?|wss?|tcp|ssh|unix|unix\+tls):$/.test(protocol) || host === "")
      return "a service of no known kind";
    return pathname === "" || (pathname === "/" && !service.endsWith("/"))
      ? undefined
      : "a service with a path";
  } catch {
    return "a service that is no URL";
  }
}

function expressionProblem(path: string | undefined): string | undefined {
  if (!path) return undefined;
  try {
    RE2JS.compile(path);
    return undefined;
  } catch {
    return "a path that is no regular expression";
  }
}

/** The first rule that matches; the path is compared decoded and anywhere. */
export function matchingRule(
  ingress: readonly IngressRule[],
  hostname: string,
  path: string,
): IngressRule | undefined {
  return ingress.find((rule) => matchesHost(rule, hostname) && matchesPath(rule, decodeURIComponent(path)));
}

function matchesEveryHost({ hostname }: IngressRule): boolean {
  return hostname === undefined || hostname === "" || hostname === "*";
}

function matchesHost(rule: IngressRule, hostname: string): boolean {
  if (matchesEveryHost(rule)) return true;
  const { hostname: pattern = "" } = rule;
  return pattern.startsWith("*.") ? hostname.endsWith(pattern.slice(1)) : pattern === hostname;
}

function matchesPath({ path }: IngressRule, asked: string): boolean {
  return path === undefined || path === "" || RE2JS.compile(path).matcher(asked).find();
}
