/**
 * The scripts that run in Envoy, and only for requests whose authority is no scope as it stands:
 * wildcards, capitals, a trailing dot, or a host of a wildcard listener over a connection that was
 * opened for another name.
 *
 * The first one writes the name as scopes do. The second one finds the scope by asking Envoy for
 * the exact one, then by stripping labels with the table of wildcards, then the scope for all. On
 * TLS ports it finds the listener of the server name in the same way, and marks the request as
 * rightly directed if it is the same one; the first route of every scope answers 421 to what is not
 * marked.
 *
 * Which listener a scope belongs to is the first word in the names of its routes. A script can make
 * Envoy look for the route again, by asking for its metadata, but only once per request: that is
 * why they are two.
 */

import { SCOPE_HEADER, SNI_HEADER } from "./names.ts";

const NORMAL = `local function normal(name)
  name = string.lower(name)
  if string.sub(name, -1) == "." then name = string.sub(name, 1, -2) end
  return name
end
`;

/** The same for every port and tenant. */
export const normalScript: string = `${NORMAL}function envoy_on_request(h)
  local hd = h:headers()
  local scope = hd:get("${SCOPE_HEADER}")
  if scope == nil then return end
  local port, given = string.match(scope, "^(%d+)/([^:]*)")
  if port == nil then return end
  local host = normal(given)
  if host == given then return end
  hd:replace("${SCOPE_HEADER}", port .. "/" .. host)
  h:clearRouteCache()
  h:metadata()
end
`;

/** `scopes`: names of the scopes with wildcards, and the listener that each belongs to. */
export function tenancyScript(scopes: Iterable<readonly [scope: string, listener: string]>): string {
  const table = [...scopes].sort(([a], [b]) => (a < b ? -1 : 1));
  return `local wild = {${table.map(([scope, listener]) => `[${quoted(scope)}]=${quoted(listener)}`).join(",")}}
local SCOPE, SNI = "${SCOPE_HEADER}", "${SNI_HEADER}"
local function owner(h) return string.match(h:streamInfo():routeName() or "", "^(%S+) ") end
local function exact(h, hd, key)
  hd:replace(SCOPE, key)
  h:clearRouteCache()
  h:metadata()
  return owner(h)
end
local function wider(port, name)
  local dot = string.find(name, ".", 1, true)
  while dot do
    name = string.sub(name, dot + 1)
    local key = port .. "/*." .. name
    if wild[key] then return wild[key], key end
    dot = string.find(name, ".", 1, true)
  end
  return wild[port .. "/*"], port .. "/*"
end
${NORMAL}function envoy_on_request(h)
  local hd = h:headers()
  local scope = hd:get(SCOPE)
  if scope == nil then return end
  local port, host = string.match(scope, "^(%d+)/([^:]*)")
  if port == nil then return end
  local key = port .. "/" .. host
  local listener = owner(h)
  if listener == nil then listener, key = wider(port, host) end
  local sni = hd:get(SNI)
  if sni ~= nil and listener ~= nil then
    local name = normal(string.sub(sni, #port + 2))
    local same = name == host
    if not same then
      same = (exact(h, hd, port .. "/" .. name) or wider(port, name)) == listener
    end
    if same then hd:replace(SNI, key) end
  end
  hd:replace(SCOPE, key)
  h:clearRouteCache()
end
`;
}

function quoted(value: string): string {
  return `"${value.replace(/[^\x20-\x7e]|["\\]/gu, (char) =>
    [...Buffer.from(char)].map((byte) => `\\${String(byte).padStart(3, "0")}`).join(""),
  )}"`;
}
