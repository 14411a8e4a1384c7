import { selfSigned } from "../../../dataplanes/support/certificates.ts";
import { days, GATEWAY, LONG, secret, set } from "./case-manifests.ts";
import type { CheckCase } from "./check-case.ts";

export const CERTIFICATE_CASES: readonly CheckCase[] = [
  {
    rule: "certificate-invalid",
    text:
      GATEWAY +
      set("team-a", { port: 443, hostname: "a.example.com", tls: "{name: cert}" }) +
      secret("team-a", "cert", { ...selfSigned(["a.example.com"], LONG), key: selfSigned(["b"]).key }),
    owner: "ListenerSet team-a/web",
    message: /Secret team-a\/cert cannot be used: tls.key does not belong to tls.crt/,
    at: "{name: cert}",
  },
  {
    rule: "certificate-expired",
    text:
      GATEWAY +
      set("team-a", { port: 443, hostname: "a.example.com", tls: "{name: cert}" }) +
      secret("team-a", "cert", selfSigned(["a.example.com"], days(-3))),
    owner: "ListenerSet team-a/web",
    message: /has ended 3 days ago \(2026-05-29\)/,
    at: "{name: cert}",
  },
  {
    rule: "certificate-expiring",
    text:
      GATEWAY +
      set("team-a", { port: 443, hostname: "a.example.com", tls: "{name: cert}" }) +
      secret("team-a", "cert", selfSigned(["a.example.com"], days(29))),
    owner: "ListenerSet team-a/web",
    message: /ends in 29 days/,
    at: "{name: cert}",
  },
  {
    rule: "certificate-name",
    text:
      GATEWAY +
      set("team-a", { port: 443, hostname: "a.b.example.com", tls: "{name: cert}" }) +
      secret("team-a", "cert", selfSigned(["*.example.com"], LONG)),
    owner: "ListenerSet team-a/web",
    message: /are for \*\.example\.com, not for a\.b\.example\.com/,
    at: "name: main",
  },
  {
    rule: "certificate-covers-other-tenant",
    text:
      GATEWAY +
      set("team-a", { port: 443, hostname: "a.example.com", tls: "{name: cert}" }) +
      secret("team-a", "cert", selfSigned(["*.example.com"], LONG)) +
      set("team-b", { port: 443, hostname: "b.example.com", tls: "{name: cert}" }) +
      secret("team-b", "cert", selfSigned(["b.example.com"], LONG)),
    owner: "ListenerSet team-a/web",
    message: /also covers b\.example\.com, which ListenerSet team-b\/web serves on port 443/,
    at: "{name: cert}",
  },
];
