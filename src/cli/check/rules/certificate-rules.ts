/** Rules about certificates: validity, expiry, and the names that they cover. */
import { coversPattern } from "../../../plan/hostname.ts";
import { isFor, overlapsName } from "../../../view/certificate-names.ts";
import type { CertificateView } from "../../../view/merged-state.ts";
import type { CheckInput, CheckRule, Problem } from "./finding.ts";
import { attachedListeners, lacksGrant, type OwnedListener } from "./places.ts";

const DAY_MS = 86_400_000;

export const certificateExpired: CheckRule = {
  id: "certificate-expired",
  severity: "error",
  summary: "A certificate has ended: clients refuse the connection.",
  find: (input) =>
    expiring(input, (days) => days < 0, "has ended", "Renew it now: clients refuse the connection."),
};

export const certificateExpiring: CheckRule = {
  id: "certificate-expiring",
  severity: "warning",
  summary: "A certificate ends soon (--expiry-days, 30 by default).",
  find: (input) =>
    expiring(
      input,
      (days) => days >= 0 && days < input.expiryDays,
      "ends",
      "Renew it, or have it renewed automatically.",
    ),
};

function* expiring(
  { state, now }: CheckInput,
  concerns: (days: number) => boolean,
  verb: string,
  remedy: string,
): Generator<Problem> {
  for (const { listener, certificate, at, path } of certificates(state)) {
    if (certificate.notAfter === undefined) continue;
    const days = (Date.parse(certificate.notAfter) - now.getTime()) / DAY_MS;
    if (!concerns(days)) continue;
    const when = days < 0 ? `${Math.ceil(-days)} days ago` : `in ${Math.floor(days)} days`;
    const message = `listener ${listener.section}: certificate ${certificate.secret} ${verb} ${when} (${certificate.notAfter.slice(0, 10)})`;
    yield { at, path, message, remedy };
  }
}

export const certificateName: CheckRule = {
  id: "certificate-name",
  severity: "warning",
  summary: "No certificate of a listener is for its hostname: clients refuse the connection.",
  *find({ state }) {
    for (const { listener, owner, at, path } of attachedListeners(state)) {
      const usable = listener.certificates.filter(({ problem }) => problem === undefined);
      if (listener.hostname === "" || usable.length === 0) continue;
      const names = usable.flatMap((certificate) => certificate.names);
      if (names.some((name) => isFor(name, listener.hostname))) continue;
      yield {
        at,
        path,
        message: `listener ${listener.section}: its certificates are for ${names.join(", ") || "no name"}, not for ${listener.hostname}`,
        remedy: `Use a certificate for ${listener.hostname} in namespace ${owner.namespace}.`,
      };
    }
  },
};

/**
 * A browser reuses an HTTP/2 connection for every name of the certificate (RFC 9113, 9.1.1). If the
 * certificate also covers another tenant's hostname, that tenant's requests come on this connection
 * and get 421.
 */
export const certificateOverlap: CheckRule = {
  id: "certificate-covers-other-tenant",
  severity: "warning",
  summary:
    "A certificate also covers a hostname that another namespace serves on the port: browsers may mix up connections (421).",
  *find({ state }) {
    const serving = [...attachedListeners(state)].filter(
      ({ listener }) =>
        listener.state === "serving" && listener.certificates.length > 0 && listener.hostname !== "",
    );
    const others = Map.groupBy(serving, ({ listener }) => listener.port);
    for (const { listener, owner, certificate, at, path } of certificates(state)) {
      if (listener.state !== "serving") continue;
      const met = (others.get(listener.port) ?? []).find(
        (other) =>
          other.owner.namespace !== owner.namespace &&
          certificate.names.some((name) => overlapsName(name, other.listener.hostname)) &&
          !coversPattern(other.listener.hostname, listener.hostname),
      );
      if (met === undefined) continue;
      yield {
        at,
        path,
        message: `listener ${listener.section}: certificate ${certificate.secret} (${certificate.names.join(", ")}) also covers ${met.listener.hostname}, which ${met.owner.kind} ${met.owner.namespace}/${met.owner.name} serves on port ${listener.port}`,
        remedy: "Use a certificate with the names of this listener alone.",
      };
    }
  },
};

interface UsedCertificate extends OwnedListener {
  readonly certificate: CertificateView;
}

function* certificates(state: CheckInput["state"]): Generator<UsedCertificate> {
  for (const owned of attachedListeners(state)) {
    for (const [index, certificate] of owned.listener.certificates.entries()) {
      if (certificate.problem !== undefined) continue;
      yield { ...owned, certificate, path: [...owned.path, "tls", "certificateRefs", index] };
    }
  }
}

export const certificateInvalid: CheckRule = {
  id: "certificate-invalid",
  severity: "error",
  summary:
    "A certificate that a listener refers to is not there or cannot be used: not PEM, of another key, too weak.",
  *find({ state }) {
    for (const { listener, at, path } of attachedListeners(state)) {
      if (lacksGrant(listener)) continue;
      for (const [index, { secret, problem }] of listener.certificates.entries()) {
        if (problem === undefined) continue;
        const cannot = problem === "does not exist" ? problem : `cannot be used: ${problem}`;
        yield {
          at,
          path: [...path, "tls", "certificateRefs", index],
          message: `listener ${listener.section}: Secret ${secret} ${cannot}`,
          remedy:
            "Put a PEM certificate chain into tls.crt, leaf first, and its unencrypted key into tls.key.",
        };
      }
    }
  },
};
