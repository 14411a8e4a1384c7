/** Cases that fail through a data plane and may: each with the reason why it stays so. */

import type { Gateway, KnownDifference } from "./judge.ts";

/** Several cases that differ for one reason. */
function each(
  suite: string,
  contestant: Gateway,
  names: readonly string[],
  reason: string,
): readonly KnownDifference[] {
  return names.map((name) => ({ suite, contestant, name, reason }));
}

const PREFACE: Omit<KnownDifference, "contestant"> = {
  suite: "h2spec",
  part: "cleartext",
  name: "http2/3.5: Sends invalid connection preface",
  reason:
    "The port speaks HTTP/1.1 too: what is no preface is read as HTTP/1.1, answered with 400 and the connection is closed." +
    " h2spec takes the answer for a frame.",
};

const ENVOY_H2SPEC: readonly KnownDifference[] = [
  {
    suite: "h2spec",
    contestant: "envoy",
    name: 'http2/6.1: Sends a DATA frame on the stream that is not in "open" or "half-closed (local)" state',
    reason:
      "As with other frames of closed streams, when the answer of the backend is faster than the DATA frame; else Envoy resets the stream.",
    racy: true,
  },
  ...each(
    "h2spec",
    "envoy",
    ["generic/3.8: Sends a GOAWAY frame", "http2/7: Sends a GOAWAY frame with unknown error code"],
    "Envoy's HTTP/2 codec leaves a PING after the client's GOAWAY unanswered and the connection open until it is idle for too long.",
  ),
  ...each(
    "h2spec",
    "envoy",
    [
      "http2/5.1: closed: Sends a DATA frame after sending RST_STREAM frame",
      "http2/5.1: closed: Sends a HEADERS frame after sending RST_STREAM frame",
      "http2/5.1: closed: Sends a DATA frame",
      "http2/5.1: closed: Sends a HEADERS frame",
    ],
    "Envoy's HTTP/2 codec ignores frames of closed streams. RFC 9113, 5.1 leaves that open; h2spec asks for what RFC 7540 said.",
  ),
  ...each(
    "h2spec",
    "envoy",
    ["http2/5.1.1: Sends stream identifier that is numerically smaller than previous"],
    "Envoy's HTTP/2 codec takes a lower number for a stream that is closed and ignores it; RFC 9113, 5.1.1 asks for an error.",
  ),
  ...each(
    "h2spec",
    "envoy",
    [
      "http2/5.3.1: Sends PRIORITY frame that depend on itself",
      "http2/6.3: Sends a PRIORITY frame with 0x0 stream identifier",
    ],
    "Envoy's HTTP/2 codec skips PRIORITY frames without reading them; RFC 9113, 5.3.2 deprecates them.",
  ),
  ...each(
    "h2spec",
    "envoy",
    [
      "http2/5.4.1: Sends an invalid PING frame to receive GOAWAY frame",
      "http2/6.9.1: Sends multiple WINDOW_UPDATE frames increasing the flow control window to above 2^31-1",
      "http2/6.9.1: Sends multiple WINDOW_UPDATE frames increasing the flow control window to above 2^31-1 on a stream",
    ],
    "Envoy closes the connection without a GOAWAY or RST_STREAM frame first, which RFC 9113, 5.4.1 only recommends.",
  ),
];

const ENVOY_CLOSING: KnownDifference = {
  suite: "autobahn",
  contestant: "envoy",
  name: /: closing$/,
  reason:
    "Envoy waits a second for the client to close first (`delayed_close_timeout`), as long as Autobahn waits for the server." +
    " A shorter time would cut the ends of answers off for clients on slow lines; there is one for both.",
  racy: true,
};

const ENVOY_RESETS: KnownDifference = {
  suite: "connect",
  contestant: "envoy",
  part: "grpc-go",
  name: /^Timeouts\/HTTPVersion:2\/Protocol:PROTOCOL_GRPC\//,
  reason:
    "At a call's deadline the server of grpc-go resets its stream with CANCEL, which a client whose deadline is over takes for deadline_exceeded." +
    " Envoy resets the client's stream with INTERNAL_ERROR, whatever the backend's code was: the case fails when that is faster than the client's own timer.",
  racy: true,
};

/** Where both data planes differ from the server alone. */
function both(names: readonly string[], reason: string): readonly KnownDifference[] {
  return (["embedded", "envoy"] as const).flatMap((contestant) =>
    each("http-clients", contestant, names, reason),
  );
}

const HTTP_CLIENTS: readonly KnownDifference[] = [
  ...both(
    [
      "tests.test_auth.test_ignore_netrc[http]",
      "tests.test_auth.test_ignore_netrc[https]",
      "tests.test_exit_status.test_error_response_exits_0_without_check_status",
      "tests.test_exit_status.test_3xx_check_status_exits_3_and_stderr_when_stdout_redirected",
      "tests.test_exit_status.test_4xx_check_status_exits_4",
      "tests.test_exit_status.test_5xx_check_status_exits_5",
      "tests.test_output.TestVerboseFlag.test_verbose_implies_all",
      "tests.test_redirects.test_follow_all_redirects_shown",
    ],
    "httpbin writes reason phrases in capitals and the test compares them; a gateway writes its own." +
      " They mean nothing (RFC 9112, 4), and HTTP/2 has none.",
  ),
  ...both(
    ["tests.test_requests.TestRequests.test_proxy_authorization_preserved_on_request"],
    "Proxy-Authorization is for the proxy that asks for it (RFC 9110, 11.7.2); backends of tenants do not get to see it.",
  ),
  ...both(
    ["tests.test_json.test_nested_json_syntax[input_json17-expected_json17]"],
    "It fails without a gateway as well: httpie's test and the installed libraries do not agree.",
  ),
];

export const KNOWN_DIFFERENCES: readonly KnownDifference[] = [
  { ...PREFACE, contestant: "embedded" },
  { ...PREFACE, contestant: "envoy" },
  ...ENVOY_H2SPEC,
  ...HTTP_CLIENTS,
  ENVOY_CLOSING,
  ENVOY_RESETS,
];
