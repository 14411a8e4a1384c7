import type { HeaderFields } from "./header-fields.ts";

export function isGrpc(headers: HeaderFields): boolean {
  const type = headers.get("content-type");
  return type !== undefined && /^application\/grpc(?:$|[+;])/i.test(type);
}
