/**
 * Rules for requests behind a tunnel, where every request arrives in cleartext on one loopback
 * port. Only X-Forwarded-Proto still says whether the client used http or https. The edge sets it
 * and overwrites what the client sent.
 *
 * - A redirect that names no scheme keeps the client's. It becomes two rules, one for http and one
 *   for https.
 * - A redirect of an HTTP listener to https on the same host applies to clients over http only.
 *   Otherwise it would redirect to itself for ever.
 * - Rules of an HTTP listener beside an HTTPS one of the same owner and hostname apply to clients
 *   over http only, and come first for them.
 */
import type { ListenerProtocol } from "../../plan/plan.ts";
import type { RedirectAction, Rule } from "../../plan/rule.ts";

const SCHEME_HEADER = "x-forwarded-proto";

export function primaryRules(rules: readonly Rule[], protocol: ListenerProtocol): readonly Rule[] {
  return rules.flatMap((rule) => {
    if (rule.action.type !== "redirect") return [rule];
    const { action } = rule;
    if (action.scheme === undefined) {
      return [
        overHttp({ ...rule, action: withScheme(action, "http") }),
        { ...rule, action: withScheme(action, "https") },
      ];
    }
    return [protocol === "HTTP" && leadsToHttps(action) ? overHttp(rule) : rule];
  });
}

export function twinRules(rules: readonly Rule[]): readonly Rule[] {
  return rules.map((rule) =>
    rule.action.type === "redirect" && rule.action.scheme === undefined
      ? overHttp({ ...rule, action: withScheme(rule.action, "http") })
      : overHttp(rule),
  );
}

/** To https on the host that was asked for. */
export function leadsToHttps({ scheme, hostname }: RedirectAction): boolean {
  return scheme === "https" && hostname === undefined;
}

function overHttp(rule: Rule): Rule {
  const { match } = rule;
  const came = { type: "exact", name: SCHEME_HEADER, value: "http" } as const;
  return { ...rule, match: { ...match, headers: [...match.headers, came] } };
}

function withScheme(action: RedirectAction, scheme: string): RedirectAction {
  return { ...action, scheme };
}
