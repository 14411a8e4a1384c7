/**
 * What a tunnel leaves of the features of the data plane behind it (names of the Gateway API
 * suite). TLS ends at Cloudflare's edge and requests arrive by Host alone: there are no streams, no
 * server names, no client certificates, no ports and no connections of clients.
 */
const LOST: readonly RegExp[] = [
  /^(TLS|TCP|UDP)Route/,
  /^GatewayFrontendClientCertificateValidation/,
  /^GatewayHTTPSListenerDetectMisdirectedRequests$/,
  /^GatewayPort8080$/,
  /^HTTPRouteDestinationPortMatching$/,
];

export function tunnelFeatures(inner: ReadonlySet<string>): ReadonlySet<string> {
  return new Set([...inner].filter((feature) => !LOST.some((lost) => lost.test(feature))));
}
