/**
 * The one script that runs in Envoy, and only for requests whose authority is no scope as it stands: wildcards, capitals, a trailing
 * dot, or a host of a wildcard listener over a connection that was opened for another name.
 *
 * It finds the scope by asking Envoy for the exact one, then by stripping labels with the table of wildcards, then the scope for all. On
 * TLS ports it finds the listener of the server name in the same way, and marks the request as rightly directed if it is the same one; the
 * first route of every scope answers 421 to what is not marked.
 */

import { SCOPE_HEADER, SNI_HEADER } from "./names.ts";

/** `scopes`: names of the scopes with wildcards, and the listener that each belongs to. */
export function tenancyScript(scopes: Iterable<readonly [scope: string, listener: string]>): string {
  const table = [...scopes].sort(([a], [b]) => (a < b ? -1 : 1));
  return `local wild = {${table.map(([scope, listener]) => `[${quoted(scope)}]=${quoted(listener)}`).join(",")}}
local SCOPE, SNI = "${SCOPE_HEADER}", "${SNI_HEADER}"
local function find(h, hd, port, name)
  local key = port .. "/" .. name
  hd:replace(SCOPE, key)
  h:clearRouteCache()
  h:metadata():get("") -- the virtual host is that of the last route that was asked for
  local listener = h:virtualHost():metadata():get("listener")
  if listener ~= nil then return listener, key end
  local dot = string.find(name, ".", 1, true)
  while dot do
    name = string.sub(name, dot + 1)
    key = port .. "/*." .. name
    if wild[key] then return wild[key], key end
    dot = string.find(name, ".", 1, true)
  end
  key = port .. "/*"
  return wild[key], key
end
local function normal(name)
  name = string.lower(name)
  if string.sub(name, -1) == "." then name = string.sub(name, 1, -2) end
  return name
end
function envoy_on_request(h)
  local hd = h:headers()
  local scope = hd:get(SCOPE)
  if scope == nil then return end
  local port, host = string.match(scope, "^(%d+)/([^:]*)")
  if port == nil then return end
  host = normal(host)
  local listener, key = find(h, hd, port, host)
  if listener == nil then return end
  local sni = hd:get(SNI)
  if sni ~= nil then
    local name = normal(string.sub(sni, #port + 2))
    if name == host or find(h, hd, port, name) == listener then hd:replace(SNI, key) end
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
