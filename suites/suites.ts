import { autobahn } from "./autobahn.ts";
import { browser } from "./browser/suite.ts";
import { connect } from "./connect/suite.ts";
import { grpcInterop } from "./grpc-interop.ts";
import { h2spec } from "./h2spec.ts";
import { httpbin } from "./httpbin/suite.ts";
import { page } from "./page/suite.ts";
import type { Suite } from "./suite.ts";
import { tlsScanners } from "./tls-scanners.ts";

/** All suites, in the order in which they run and are shown. */
export const SUITES: readonly Suite[] = [
  grpcInterop,
  h2spec,
  browser,
  connect,
  tlsScanners,
  httpbin,
  autobahn,
];

/** Run in the same way, but of this project: the page of results leaves them out. */
export const OWN_SUITES: readonly Suite[] = [page];
