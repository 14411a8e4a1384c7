/** Whether a Connection field says that the sender closes after this message (RFC 9112 9.6). */
export function asksToClose(connection: string | undefined): boolean {
  return connection !== undefined && /(?:^|,)[ \t]*close[ \t]*(?:,|$)/i.test(connection);
}

/** Whether a Connection field says that `Upgrade` is meant for the receiver (RFC 9110, 7.8). */
export function asksToUpgrade(connection: string | undefined): boolean {
  return connection !== undefined && /(?:^|,)[ \t]*upgrade[ \t]*(?:,|$)/i.test(connection);
}
