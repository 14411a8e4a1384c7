/**
 * The table as a configuration of nginx: one server block per tenant, one location per route,
 * kept-alive upstreams.
 */

import {
  certificateFile,
  GRPC_SERVICE,
  HTTP_ROUTES,
  hostOf,
  keyFile,
  prefixOf,
  type World,
} from "./world.ts";

export function nginxConfig(
  world: World,
  options: { readonly folder: string; readonly http: number; readonly tls: number },
): string {
  const tenants = Array.from({ length: world.tenants }, (_, tenant) => tenant);
  return `daemon off; master_process off; pid ${options.folder}/proxy.pid; error_log stderr error;
events { worker_connections 16384; }
http {
  access_log off; keepalive_requests 1000000000; keepalive_timeout 300s; client_body_temp_path ${options.folder};
  proxy_temp_path ${options.folder}; server_names_hash_max_size 32768; server_names_hash_bucket_size 128;
  ssl_protocols TLSv1.2 TLSv1.3; ssl_session_cache none; ssl_session_tickets off;
  proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host;
  proxy_set_header X-Forwarded-For $remote_addr; proxy_set_header X-Forwarded-Proto $scheme;
  proxy_set_header X-Request-Id $request_id;
${tenants.map((tenant) => tenantBlocks(world, tenant, options)).join("")}}
`;
}

function tenantBlocks(
  world: World,
  tenant: number,
  ports: { readonly http: number; readonly tls: number },
): string {
  const backlog = tenant === 0 ? " backlog=4096" : "";
  const locations = Array.from(
    { length: HTTP_ROUTES },
    (_, route) => `location ${prefixOf(route)}/ { proxy_pass http://web-${tenant}; }\n`,
  );
  return `upstream web-${tenant} { server 127.0.0.1:${world.backendPort}; keepalive 64; keepalive_requests 1000000000; }
upstream grpc-${tenant} { server 127.0.0.1:${world.grpcPort}; keepalive 64; keepalive_requests 1000000000; }
server {
  listen 127.0.0.1:${ports.http}${backlog}; listen 127.0.0.1:${ports.tls} ssl http2${backlog}; server_name ${hostOf(tenant)};
  ssl_certificate ${certificateFile(world, tenant)}; ssl_certificate_key ${keyFile(world, tenant)};
  ${locations.join("")}location /${GRPC_SERVICE}/ { grpc_pass grpc://grpc-${tenant}; }
}
`;
}
