/** Rules about listeners: conflicts, refusals, references, listeners without routes. */
import { describeListener } from "../../../view/merged-state.ts";
import type { CheckRule } from "./finding.ts";
import { attachedListeners, lacksCertificate, lacksGrant } from "./places.ts";

export const listenerConflict: CheckRule = {
  id: "listener-conflict",
  severity: "error",
  summary: "Another listener of the Gateway holds the port and hostname.",
  *find({ state }) {
    for (const { listener, at, path } of attachedListeners(state)) {
      if (listener.state !== "conflicted") continue;
      const { reason, message, heldBy } = listener;
      const holder = heldBy === undefined ? "" : `; held by ${describeListener(heldBy)}`;
      yield {
        at,
        path,
        message: `listener ${listener.section}: ${reason}: ${message}${holder}`,
        remedy:
          heldBy === undefined
            ? "Give the listeners of this resource different ports or hostnames."
            : "Use another hostname or port, or have the holder give it up.",
      };
    }
  },
};

export const listenerRefused: CheckRule = {
  id: "listener-not-accepted",
  severity: "error",
  summary:
    "A listener is not accepted for a reason of its own: protocol, TLS settings, certificate, a limit.",
  *find({ state }) {
    for (const { listener, at, path } of attachedListeners(state)) {
      if (listener.state !== "refused" || lacksGrant(listener) || lacksCertificate(listener)) continue;
      yield {
        at,
        path,
        message: `listener ${listener.section}: ${listener.reason}: ${listener.message}`,
        remedy: REMEDIES[listener.reason ?? ""] ?? "Mend what the message says.",
      };
    }
  },
};

const REMEDIES: Readonly<Record<string, string>> = {
  Invalid: "Add the Secret with a certificate and its key, or correct tls.certificateRefs.",
  UnsupportedProtocol: "Use HTTP, HTTPS, TLS, TCP or UDP, as far as the data plane serves it.",
  UnsupportedValue: "Change the field that the message names.",
  TooManyListeners: "Remove listeners of the Gateway or of its sets, or raise the limit.",
  PortUnavailable: "Name a port.",
  NoValidCACertificate: "The Gateway's owner must mend spec.tls.frontend.",
};

export const listenerReference: CheckRule = {
  id: "listener-reference",
  severity: "warning",
  summary:
    "A listener is served, but one of its certificates, CA references or route kinds does not resolve.",
  *find({ state }) {
    for (const { listener, at, path } of attachedListeners(state)) {
      const { unresolved, section } = listener;
      if (unresolved === undefined || lacksGrant(listener) || lacksCertificate(listener)) continue;
      yield {
        at,
        path,
        message: `listener ${section}: ${unresolved.reason}: ${unresolved.message}`,
        remedy: "Add what it refers to, or remove the reference.",
      };
    }
  },
};

export const listenerWithoutRoutes: CheckRule = {
  id: "listener-without-routes",
  severity: "info",
  summary: "A listener is served and no route is attached: requests get 404, connections nothing.",
  *find({ state }) {
    for (const { listener, owner, at, path } of attachedListeners(state)) {
      if (listener.state !== "serving" || listener.attachedRoutes > 0 || owner.role === "root") continue;
      yield {
        at,
        path,
        message: `listener ${listener.section}: no route is attached, so ${nothingFor(listener.protocol)}`,
        remedy: `Add a route whose parentRef is ${owner.kind} ${owner.name} (routes attach to the set itself, not to its Gateway).`,
      };
    }
  },
};

function nothingFor(protocol: string): string {
  return protocol === "HTTP" || protocol === "HTTPS"
    ? "everything it gets is answered with 404"
    : "every connection to it comes to nothing";
}

/**
 * Before `listeners` became optional, a Gateway that only carried sets needed a placeholder
 * listener. It still takes a hostname of its port, or all of them.
 */
export const placeholderListener: CheckRule = {
  id: "placeholder-listener",
  severity: "info",
  summary: "A Gateway that takes sets has a listener of its own without routes: probably a placeholder.",
  *find({ state, workspace: { resources } }) {
    for (const { listener, owner, at, path } of attachedListeners(state)) {
      if (owner.role !== "root" || listener.state !== "serving" || listener.attachedRoutes > 0) continue;
      const gateway = resources.get(at);
      const from = gateway?.kind === "Gateway" ? gateway.spec.allowedListeners?.namespaces?.from : undefined;
      if (from === undefined || from === "None") continue;
      const takes = listener.hostname === "" ? "every hostname that no set names" : listener.hostname;
      yield {
        at,
        path,
        message: `listener ${listener.section} has no routes and answers ${takes} on port ${listener.port} with 404`,
        remedy:
          "Give it a hostname that nobody uses, attach a route to it, or remove it where the API allows that.",
      };
    }
  },
};
