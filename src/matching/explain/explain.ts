/**
 * Where a request would go, and why nothing else takes it: port → SNI → client certificate →
 * listener → authority → rule → guards → backend.
 *
 * Every decision is the routing table's own, made by the calls that the embedded data plane makes;
 * this file only writes them down.
 */

import { validationAt } from "../../plan/client-validation.ts";
import type { HostItem, ListenerItem, PortItem } from "../../plan/plan.ts";
import type { Rule } from "../../plan/rule.ts";
import { hostnameOf, normalizeName } from "../authority.ts";
import { redirectLocation } from "../redirect.ts";
import { RequestFacts, type RequestView } from "../request.ts";
import type { RoutingTable } from "../routing-table.ts";
import { sharesOf } from "./backend-share.ts";
import { candidateOf, losingListeners, losingRules, pattern } from "./elimination.ts";
import type {
  CandidateListener,
  Elimination,
  ExplainedRequest,
  Explanation,
  ExplanationStep,
  GuardOutcome,
} from "./explanation.ts";
import { clientAddressSource, guardOutcome, guardText } from "./guard-outcome.ts";
import { shown } from "./mismatch.ts";

export function explainRequest(table: RoutingTable, request: ExplainedRequest): Explanation {
  return new Inquiry(table, request).run();
}

/** The outcome of an explanation, before steps and candidates are put beside it. */
type Decision = Pick<Explanation, "outcome"> &
  Partial<Pick<Explanation, "status" | "location" | "route" | "backends">>;

class Inquiry {
  readonly #table: RoutingTable;
  readonly #request: ExplainedRequest;
  readonly #steps: ExplanationStep[] = [];
  readonly #eliminated: Elimination[] = [];
  #listener: CandidateListener | undefined;
  #guards: readonly GuardOutcome[] = [];

  constructor(table: RoutingTable, request: ExplainedRequest) {
    this.#table = table;
    this.#request = request;
  }

  run(): Explanation {
    const decision = this.#atPort();
    return {
      ...(this.#listener === undefined ? {} : { listener: this.#listener }),
      backends: [],
      ...decision,
      guards: this.#guards,
      steps: this.#steps,
      eliminated: this.#eliminated,
    };
  }

  #atPort(): Decision {
    const { scheme } = this.#request;
    const port = this.#choosePort();
    if (port === undefined) return this.#refuse("port", `nothing listens on port ${this.#request.port}`);
    this.#note("port", `port ${port.port} of Gateway ${port.gateway} speaks ${port.protocol}`);
    if (port.clientAddress !== undefined)
      this.#note("client", `its address comes from ${clientAddressSource(port.clientAddress)}`);
    switch (port.protocol) {
      case "http":
        if (scheme !== "http") return this.#refuse("port", `the port speaks cleartext HTTP, not ${scheme}`);
        return this.#atCleartext(port);
      case "tls":
        if (scheme !== "https" && scheme !== "tls")
          return this.#refuse("port", `the port speaks TLS, not ${scheme}`);
        return this.#atHandshake(port);
      case "tcp":
      case "udp":
        return this.#atStream(port, undefined);
    }
  }

  #choosePort(): PortItem | undefined {
    const { port: wanted, gateway, scheme, authority } = this.#request;
    if (typeof wanted === "string") return this.#table.get("port", wanted);
    const transport = scheme === "udp" ? "udp" : "tcp";
    const ports = [...this.#table.ports()]
      .filter((port) => port.port === wanted && port.transport === transport)
      .filter((port) => gateway === undefined || port.gateway === gateway)
      .sort((a, b) => (a.gateway < b.gateway ? -1 : 1));
    // Each Gateway has addresses of its own: without one named, the first that knows the host is
    // meant.
    const name = scheme === "http" ? hostnameOf(authority) : this.#serverName();
    const chosen = ports.find((port) => this.#table.listenerFor(port.id, name) !== undefined) ?? ports[0];
    for (const port of ports) {
      if (port === chosen) continue;
      for (const listener of this.#table.listenersOf(port.id)) {
        this.#eliminated.push({
          listener: candidateOf(listener),
          rule: "port",
          reason: `belongs to Gateway ${port.gateway}, which has addresses of its own`,
        });
      }
    }
    return chosen;
  }

  #atCleartext(port: PortItem): Decision {
    const name = hostnameOf(this.#request.authority);
    const admission = this.#table.admitHttp(port.id, this.#request.authority);
    const listener = "listener" in admission ? admission.listener : undefined;
    this.#eliminate(losingListeners(this.#table.listenersOf(port.id), listener, name));
    if ("status" in admission) {
      return this.#respond("listener", admission.status, `no listener of the port is for ${shown(name)}`);
    }
    this.#choose(admission.listener, `most specific for host ${shown(name)}`);
    return this.#atRules(port, admission.listener);
  }

  #atHandshake(port: PortItem): Decision {
    const sni = this.#serverName();
    this.#note(
      "sni",
      sni === undefined ? "the client names no host (no SNI)" : `the client asks for ${shown(sni)}`,
    );
    const listener = this.#table.listenerFor(port.id, sni);
    this.#eliminate(losingListeners(this.#table.listenersOf(port.id), listener, sni));
    if (listener === undefined) return this.#refuse("sni", "no listener of the port is for that name");
    this.#choose(
      listener,
      sni === undefined ? "takes clients that name no host" : `most specific for ${shown(sni)}`,
    );
    const refused = this.#refusedHandshake(port, listener);
    if (refused !== undefined) return refused;
    if (listener.protocol !== "HTTPS") return this.#atStream(port, sni);
    if (this.#request.scheme !== "https") return this.#refuse("listener", "the listener serves HTTPS only");
    return this.#atAuthority(port, listener);
  }

  /** As clients do: an address is never sent as server name. */
  #serverName(): string | undefined {
    const name = normalizeName(this.#request.sni ?? hostnameOf(this.#request.authority));
    return name === "" || name.startsWith("[") || /^[\d.]+$/.test(name) ? undefined : name;
  }

  #refusedHandshake(port: PortItem, listener: ListenerItem): Decision | undefined {
    const { tls } = listener;
    if (tls?.mode === "Terminate" && !tls.certificates.some((id) => this.#table.get("certificate", id))) {
      return this.#refuse("certificate", "the listener has no certificate to present");
    }
    const asked = validationAt(listener, port);
    if (asked === undefined) return undefined;
    const { mode, authorities } = asked;
    const who = listener.tls?.clientValidation === undefined ? "the port" : "the listener";
    if (mode === "AllowInsecureFallback") {
      this.#note("certificate", "a client certificate is asked for, and not insisted on");
    } else if (authorities.length === 0) {
      return this.#refuse(
        "certificate",
        `${who} accepts no client: none of its authorities could be resolved`,
      );
    } else if (this.#request.clientCertificate !== true) {
      return this.#refuse("certificate", `${who} demands a valid client certificate`);
    } else {
      this.#note("certificate", "the client certificate is valid");
    }
    return undefined;
  }

  #atAuthority(port: PortItem, connection: ListenerItem): Decision {
    const name = hostnameOf(this.#request.authority);
    const admission = this.#table.admitHttps(connection.id, this.#request.authority);
    if ("listener" in admission) {
      this.#note("authority", `host ${shown(name)} belongs to the listener of the connection`);
      return this.#atRules(port, admission.listener);
    }
    if (admission.status === 404)
      return this.#respond("authority", 404, `no HTTPS listener is for host ${shown(name)}`);
    this.#markMisdirected(port, name);
    return this.#respond("authority", 421, `host ${shown(name)} belongs to another listener of the port`);
  }

  /**
   * The listener that the authority belongs to was listed as one that SNI did not choose; this is
   * the better reason.
   */
  #markMisdirected(port: PortItem, name: string): void {
    for (const listener of this.#table.listenersOf(port.id)) {
      const admission = this.#table.admitHttps(listener.id, name);
      if (!("listener" in admission)) continue;
      const ref = candidateOf(listener);
      const at = this.#eliminated.findIndex(({ listener: other }) => sameListener(other, ref));
      const reason = `421: host ${shown(name)} is its own, but the connection was opened for another listener`;
      if (at >= 0) this.#eliminated[at] = { listener: ref, rule: "misdirected", reason };
      return;
    }
  }

  #atRules(port: PortItem, listener: ListenerItem): Decision {
    const name = hostnameOf(this.#request.authority);
    const view = viewOf(this.#request);
    const rule = this.#table.matchRule(listener.id, this.#request.authority, view);
    const winner = this.#located(listener, name, rule);
    this.#eliminated.push(
      ...losingRules(this.#table, { listener, name, winner, facts: new RequestFacts(view) }),
    );
    if (winner === undefined)
      return this.#respond("rule", 404, "no rule of the listener matches the request");
    return this.#guarded(port, winner.rule);
  }

  #atStream(port: PortItem, sni: string | undefined): Decision {
    const listener = this.#table.listenerFor(port.id, sni);
    if (listener === undefined) return this.#refuse("listener", "no listener is attached to the port");
    if (this.#listener === undefined) this.#choose(listener, "the only one of its port");
    const rule = this.#table.streamRule(listener.id, sni);
    const winner = this.#located(listener, sni, rule);
    this.#eliminate(losingRules(this.#table, { listener, name: sni, winner }));
    if (winner === undefined) return this.#refuse("rule", "no route of the listener takes the connection");
    const decision = this.#guarded(port, winner.rule);
    // A stream has no answer to give: what would be a status is a closed connection.
    return decision.outcome === "respond" ? withoutStatus(decision) : decision;
  }

  /** The host whose rule was found: the first asked that holds it. */
  #located(
    listener: ListenerItem,
    name: string | undefined,
    rule: Rule | undefined,
  ): { readonly rule: Rule; readonly host: HostItem } | undefined {
    if (rule === undefined) return undefined;
    for (const host of this.#table.hostsFor(listener.id, name)) {
      if (!host.rules.includes(rule)) continue;
      const { origin } = rule;
      this.#note("host", `hostname ${pattern(host.hostname)}`);
      this.#note(
        "rule",
        `${origin.kind} ${origin.namespace}/${origin.name}, rule ${origin.rule}, match ${origin.match}`,
      );
      return { rule, host };
    }
    throw new Error("the routing table found a rule of no host");
  }

  /** Guards come before the action, whatever it is. The first one that refuses decides. */
  #guarded(port: PortItem, rule: Rule): Decision {
    const { client } = this.#request;
    this.#guards = (rule.guards ?? []).map((id) => guardOutcome(id, this.#table.get("guard", id), client));
    for (const outcome of this.#guards) {
      const text = guardText(outcome, client);
      const route = rule.origin;
      if (outcome.result === "refuses") return { ...this.#respond("guard", 403, text), route };
      if (outcome.result === "absent") return { ...this.#respond("guard", 500, text), route };
      this.#note("guard", text);
    }
    return this.#act(port, rule);
  }

  #act(port: PortItem, { origin: route, match, action }: Rule): Decision {
    switch (action.type) {
      case "respond":
        return { ...this.#respond("rule", action.status, action.reason), route };
      case "redirect": {
        const location = redirectLocation(action, {
          ...this.#request,
          listenerPort: port.port,
          matched: match.path,
        });
        return {
          ...this.#respond("rule", action.statusCode, `redirected to ${shown(location)}`),
          location,
          route,
        };
      }
      case "forward": {
        const { backends, status } = sharesOf(this.#table, action);
        if (status !== undefined) {
          const why = status === 503 ? "no backend has a ready endpoint" : "no backend is valid";
          return { ...this.#respond("backend", status, why), route, backends };
        }
        this.#note(
          "backend",
          `forwarded to ${backends
            .filter(({ share }) => share > 0)
            .map(shareText)
            .join(", ")}`,
        );
        return { outcome: "forward", route, backends };
      }
    }
  }

  #choose(listener: ListenerItem, why: string): void {
    const { kind, namespace, name } = listener.owner;
    this.#listener = candidateOf(listener);
    this.#note(
      "listener",
      `${kind} ${namespace}/${name}, ${listener.section} (${pattern(listener.hostname)}): ${why}`,
    );
  }

  #respond(at: ExplanationStep["at"], status: number, text: string): Decision {
    this.#note(at, `${status}: ${text}`);
    return { outcome: "respond", status };
  }

  #refuse(at: ExplanationStep["at"], text: string): Decision {
    this.#note(at, `refused: ${text}`);
    return { outcome: "refuse" };
  }

  /** Not by spreading: a port may have more listeners than a call takes arguments. */
  #eliminate(candidates: readonly Elimination[]): void {
    for (const candidate of candidates) this.#eliminated.push(candidate);
  }

  #note(at: ExplanationStep["at"], text: string): void {
    this.#steps.push({ at, text });
  }
}

function withoutStatus({ status: _, location: __, ...decision }: Decision): Decision {
  return { ...decision, outcome: "refuse" };
}

function shareText({ namespace, name, port, share, status }: Explanation["backends"][number]): string {
  const target = name === undefined ? "an invalid reference" : `${namespace}/${name}:${port}`;
  return `${target} (${Math.round(share * 1000) / 10} %${status === undefined ? "" : `, answered with ${status}`})`;
}

function sameListener(a: CandidateListener, b: CandidateListener): boolean {
  return a.kind === b.kind && a.namespace === b.namespace && a.name === b.name && a.section === b.section;
}

/** Rules may match Host like any other header; over HTTP/2 it comes as `:authority`. */
function viewOf({ method, authority, path, query, headers }: ExplainedRequest): RequestView {
  const values = new Map<string, string>();
  for (const [name, value] of headers) {
    const key = name.toLowerCase();
    const before = values.get(key);
    values.set(key, before === undefined ? value : `${before}, ${value}`);
  }
  return { method, path, query, header: (name) => (name === "host" ? authority : values.get(name)) };
}
