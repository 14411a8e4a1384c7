/** Why the operating system does not give Envoy a socket, as Envoy passes it on. */
const REASONS = [
  "Address already in use",
  "Permission denied",
  "Cannot assign requested address",
  "Address family not supported by protocol",
  "Too many open files",
  "No buffer space available",
] as const;

const CANNOT_BIND = new RegExp(`cannot bind '[0-9A-Fa-f:.[\\]]*': (${REASONS.join("|")})\\s*$`, "m");

/**
 * Undefined when a NACK is about anything else. Nothing else of its text is told: it may quote the
 * configuration of any tenant, with these very words in it.
 */
export function socketProblem(nack: string): string | undefined {
  return CANNOT_BIND.exec(nack)?.[1]?.toLowerCase();
}
