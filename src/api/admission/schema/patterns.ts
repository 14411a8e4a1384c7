import { RE2JS } from "re2js";

/**
 * Kubernetes patterns are RE2. They run on RE2 here too: same meaning, and linear time on hostile
 * subjects, which JavaScript's own engine does not give (`^[!-~]+([\t ]?[!-~]+)*$` takes
 * exponential time there).
 */
export type Matcher = (text: string) => boolean;

const compiled = new Map<string, Matcher>();

export function matcher(pattern: string): Matcher {
  const known = compiled.get(pattern);
  if (known !== undefined) return known;
  const re2 = RE2JS.compile(pattern);
  const fresh: Matcher = (text) => re2.test(text);
  compiled.set(pattern, fresh);
  return fresh;
}

const SUBDOMAIN = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const DOMAIN_PATH = `${SUBDOMAIN}\\/[A-Za-z0-9\\/\\-._~%!$&'()*+,;=:]+`;

const MEANINGS: ReadonlyMap<string, string> = new Map([
  [`^${SUBDOMAIN}$`, "a DNS name: lower-case letters, digits, '-' and '.', such as example.com"],
  [`^$|^${SUBDOMAIN}$`, 'an API group such as gateway.networking.k8s.io, or "" for the core group'],
  [
    `^(\\*\\.)?${SUBDOMAIN}$`,
    "a hostname in lower case, such as www.example.com or *.example.com (the wildcard only as first label)",
  ],
  ["^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "lower-case letters, digits and '-', such as team-a"],
  ["^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$", "the name of a kind, such as Service"],
  [
    "^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?$|[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\\/[A-Za-z0-9]+$",
    "a protocol such as HTTP, HTTPS, TLS, TCP or UDP, or one with a domain, such as example.com/bar",
  ],
  [`^${DOMAIN_PATH}$`, "a domain and a path, such as example.com/controller"],
  [
    `^Hostname|IPAddress|NamedAddress|${DOMAIN_PATH}$`,
    "Hostname, IPAddress, NamedAddress, or a domain and a path, such as example.com/type",
  ],
  ["^([0-9]{1,5}(h|m|s|ms)){1,4}$", "a duration such as 10s, 1h30m or 500ms"],
  ["^[A-Za-z0-9!#$%&'*+\\-.^_\\x60|~]+$", "a header name: letters, digits and !#$%&'*+-.^_`|~"],
  [
    "^[!-~]+([\\t ]?[!-~]+)*$",
    "a header value: visible ASCII characters with single spaces or tabs between them",
  ],
  [
    "^(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|[%][0-9a-fA-F]{2})+$",
    "a path of URL characters; write others percent-encoded, such as %20",
  ],
  ["^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$", "a label value: letters, digits, '-', '_' and '.'"],
]);

/** In words what a pattern asks for. */
export function meaningOf(pattern: string): string {
  return MEANINGS.get(pattern) ?? `a value matching ${pattern}`;
}
