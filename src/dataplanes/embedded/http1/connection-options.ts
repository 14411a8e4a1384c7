/** Whether a Connection field says that the sender closes after this message (RFC 9112 9.6). */
export function asksToClose(connection: string | undefined): boolean {
  return connection !== undefined && /(?:^|,)[ \t]*close[ \t]*(?:,|$)/i.test(connection);
}
