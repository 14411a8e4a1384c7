/** The merged state as JSON, for the Gateway's owner: it names both sides of every conflict. */
import { readQuestion } from "../../view/explain/asked-request.ts";
import { explain } from "../../view/explain/explain.ts";
import type {
  GatewayView,
  ListenerView,
  MergedState,
  ObjectRef,
  OwnerView,
  RouteView,
} from "../../view/merged-state.ts";
import { outlineOf } from "../../view/outline.ts";
import type { AdminState } from "../admin-state.ts";
import { type AdminAnswer, type AdminEndpoint, file, json, problem } from "./endpoint.ts";

const DEFAULT_LIMIT = 1_000;
const MAX_LIMIT = 10_000;

const PAGE: Readonly<Record<string, string>> = {
  gateway: "only of this Gateway (`namespace/name`)",
  namespace: "only of owners in this namespace",
  limit: `at most this many items (default ${DEFAULT_LIMIT}, at most ${MAX_LIMIT})`,
  offset: "leave out this many items first",
};

export function stateEndpoints(admin: AdminState): readonly AdminEndpoint[] {
  return [
    {
      path: "/api/v1/gateways",
      summary:
        "Gateways with their owners in order of precedence, listeners, routes and backends: the whole tree.",
      parameters: PAGE,
      answer:
        "`{total, items: [{namespace, name, className, addresses, attachedListenerSets, conditions, owners}]}`",
      handle: (query) => page(gateways(admin.state(), query), query),
    },
    {
      path: "/api/v1/listeners",
      summary: "Every listener, served or not, with its state and whoever holds what it wanted.",
      parameters: PAGE,
      answer:
        "`{total, items: [{gateway, owner, section, port, protocol, hostname, state, reason, message, heldBy, certificates, attachedRoutes}]}`",
      handle: (query) => page(listeners(admin.state(), query), query),
    },
    {
      path: "/api/v1/routes",
      summary: "Every route with the listeners that have taken it, or the reasons why none has.",
      parameters: PAGE,
      answer:
        "`{total, items: [{kind, namespace, name, attached: [{listener, hostnames}], problems, backends, refused}]}`",
      handle: (query) => page(routes(admin.state(), query), query),
    },
    {
      path: "/api/v1/hostnames",
      summary: "Who holds which port and hostname, and who else has claimed it.",
      parameters: PAGE,
      answer: "`{total, items: [{gateway, port, hostname, holder, claims: [{listener, state, reason}]}]}`",
      handle: (query) => page(hostnames(admin.state(), query), query),
    },
    {
      path: "/api/v1/outline",
      summary:
        "The whole tree for the page, in one answer: a route or backend that many listeners have is in it once, and they name it by its index.",
      answer: "`{version, scope, gateways, orphans, strayRoutes, strayPolicies, foreign, routes, backends}`",
      handle: () => file({ contentType: "application/json", text: outlineText(admin) }),
    },
    {
      path: "/api/v1/explain",
      summary: "Where a request would go, and why nowhere else; as `mergeway explain --json`.",
      parameters: {
        url: "what is asked for; required",
        method: "GET unless given",
        header: "`Name: value`; may be repeated",
        sni: "server name of the handshake, where it is not the URL's host",
        gateway: "the Gateway that is meant (`namespace/name`)",
        clientCertificate: "`valid`: the client presents a certificate that the port accepts",
        client: "the client's address, for address lists of policies",
      },
      answer: "`{outcome, status, location, listener, route, backends, policy, steps, eliminated}`",
      handle: (query) => explained(admin, query),
    },
    {
      path: "/api/v1/blast-radius",
      summary:
        "What would change if an object were deleted, or one of its listeners taken out or edited: computed by the engine, and not done.",
      parameters: {
        of: "`Kind/namespace/name`, or `Kind/namespace/name#listener`; required",
        hostname: "the listener's new hostname; empty for every hostname",
        port: "the listener's new port",
      },
      answer:
        "`{hostnames: [{port, hostname, before, after}], listeners: [{listener, before, after, reason, message}], routes: [{route, before, after, problems}], totals}`; lists end after 500",
      handle: (query) => blast(admin, query),
    },
  ];
}

/** Several pages may ask for one state. */
const outlines = new WeakMap<MergedState, string>();

function outlineText({ version, scope, state }: AdminState): string {
  const current = state();
  const known = outlines.get(current);
  if (known !== undefined) return known;
  const text = JSON.stringify({ version, scope, ...outlineOf(current) });
  outlines.set(current, text);
  return text;
}

function page(items: readonly unknown[], query: URLSearchParams): AdminAnswer {
  const limit = Math.min(wholeNumber(query.get("limit")) ?? DEFAULT_LIMIT, MAX_LIMIT);
  const offset = wholeNumber(query.get("offset")) ?? 0;
  return json({ total: items.length, items: items.slice(offset, offset + limit) });
}

function wholeNumber(text: string | null): number | undefined {
  return text !== null && /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

function gateways({ gateways: all }: MergedState, query: URLSearchParams): GatewayView[] {
  const gateway = query.get("gateway");
  const namespace = query.get("namespace");
  return all
    .filter((each) => gateway === null || gateway === shortName(each))
    .map((each) =>
      namespace === null
        ? each
        : { ...each, owners: each.owners.filter((owner) => owner.namespace === namespace) },
    )
    .filter((each) => namespace === null || each.owners.length > 0);
}

interface ListenerEntry {
  readonly gateway: string;
  readonly owner: OwnerView;
  readonly listener: ListenerView;
}

function* listenerEntries(state: MergedState, query: URLSearchParams): Generator<ListenerEntry> {
  for (const gateway of gateways(state, query)) {
    for (const owner of gateway.owners) {
      for (const listener of owner.listeners) yield { gateway: shortName(gateway), owner, listener };
    }
  }
}

function listeners(state: MergedState, query: URLSearchParams): unknown[] {
  return Array.from(
    listenerEntries(state, query),
    ({ gateway, owner, listener: { key: _key, routes: _routes, ...shown } }) => ({
      gateway,
      owner: refOf(owner),
      precedence: owner.precedence,
      ...shown,
    }),
  );
}

function routes(state: MergedState, query: URLSearchParams): unknown[] {
  const found = new Map<string, { readonly route: RouteView; readonly attached: unknown[] }>();
  for (const { gateway, owner, listener } of listenerEntries(state, query)) {
    for (const route of listener.routes) {
      const id = `${route.kind}/${shortName(route)}`;
      const entry = found.get(id) ?? { route, attached: [] };
      const at = { gateway, owner: refOf(owner), section: listener.section };
      entry.attached.push({ listener: at, hostnames: route.hostnames });
      found.set(id, entry);
    }
  }
  const namespace = query.get("namespace");
  const stray = state.strayRoutes.filter(
    (route) => query.get("gateway") === null && (namespace === null || route.namespace === namespace),
  );
  return [
    ...Array.from(found.values(), ({ route: { hostnames: _hostnames, ...route }, attached }) => ({
      ...route,
      attached,
      refused: [],
    })),
    ...stray.map(({ kind, namespace: home, name, parents }) => ({
      kind,
      namespace: home,
      name,
      attached: [],
      problems: [],
      backends: [],
      refused: parents,
    })),
  ];
}

function hostnames(state: MergedState, query: URLSearchParams): unknown[] {
  const byName = Map.groupBy(listenerEntries(state, query), ({ gateway, listener }) => {
    const transport = listener.protocol === "UDP" ? "udp" : "tcp";
    return `${gateway} ${transport} ${listener.port} ${listener.hostname}`;
  });
  return [...byName.values()].flatMap((entries) => {
    const first = entries[0];
    if (first === undefined) return [];
    const holder = entries.find(
      ({ listener }) => listener.state !== "conflicted" && listener.state !== "refused",
    );
    return [
      {
        gateway: first.gateway,
        port: first.listener.port,
        hostname: first.listener.hostname,
        holder: holder === undefined ? null : claimOf(holder),
        claims: entries.filter((entry) => entry !== holder).map(claimOf),
      },
    ];
  });
}

function claimOf({ owner, listener }: ListenerEntry): unknown {
  const { section, state, reason } = listener;
  return { listener: { ...refOf(owner), section }, state, ...(reason === undefined ? {} : { reason }) };
}

function explained({ table, scope, state }: AdminState, query: URLSearchParams): AdminAnswer {
  if (scope !== undefined && scope.sees !== "all") return problem(403, NEEDS_ALL);
  const url = query.get("url");
  if (url === null) return problem(400, "the parameter url is missing");
  const sni = query.get("sni");
  const gateway = query.get("gateway");
  const client = query.get("client");
  const asked = readQuestion({
    url,
    method: query.get("method") ?? "GET",
    headers: query.getAll("header"),
    ...(sni === null ? {} : { sni }),
    ...(gateway === null ? {} : { gateway }),
    ...(client === null ? {} : { client }),
    ...(query.get("clientCertificate") === "valid" ? { certificate: "valid" } : {}),
  });
  return "problem" in asked
    ? problem(400, `${asked.problem}. ${asked.remedy}`)
    : json(explain(table, state(), asked));
}

function blast(admin: AdminState, query: URLSearchParams): AdminAnswer {
  const of = query.get("of");
  if (of === null) return problem(400, "the parameter of is missing");
  if (admin.blastRadius === undefined) return problem(403, NEEDS_ALL);
  const [hostname, port] = [query.get("hostname"), query.get("port")];
  const answer = admin.blastRadius({
    of,
    ...(hostname === null ? {} : { hostname: hostname.toLowerCase() }),
    ...(port === null ? {} : { port: wholeNumber(port) ?? 0 }),
  });
  return typeof answer === "string" ? problem(400, answer) : json(answer);
}

const NEEDS_ALL = "that depends on everything that the Gateway has, and you may not read all of it";

function refOf({ kind, namespace, name }: ObjectRef): ObjectRef {
  return { kind, namespace, name };
}

function shortName({ namespace, name }: ObjectRef): string {
  return `${namespace}/${name}`;
}
