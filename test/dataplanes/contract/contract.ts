/**
 * What every data plane must do, proven with real sockets: a plan goes in, requests go through,
 * answers come out. A data plane takes part by calling `describeDataPlane` with a way to make one.
 */

import { describe } from "vitest";
import type { CreateDataPlane } from "../support/plane-under-test.ts";
import { describeAttempts } from "./attempts.ts";
import { describeAuthenticatedRequests } from "./authenticated-requests.ts";
import { describeAuthorizationParts } from "./authorization-parts.ts";
import { describeAuthorizers } from "./authorizers.ts";
import { describeBackendLimits } from "./backend-limits.ts";
import { describeBalancing } from "./balancing.ts";
import { describeBodyLimit } from "./body-limit.ts";
import { describeChanges } from "./changes.ts";
import { describeClientAddress } from "./client-address.ts";
import { describeClientCertificateBypasses } from "./client-certificate-bypasses.ts";
import { describeClientCertificates } from "./client-certificates.ts";
import { describeClientLimits } from "./client-limits.ts";
import { describeClients } from "./clients.ts";
import { describeCompression } from "./compression.ts";
import { describeCredentials } from "./credentials.ts";
import { describeDirectResponse } from "./direct-response.ts";
import { describeEditOrder } from "./edit-order.ts";
import { describeExternalAuthorization } from "./external-authorization.ts";
import { describeFilters } from "./filters.ts";
import { describeForgedFields } from "./forged-fields.ts";
import { describeGuards } from "./guards.ts";
import { describeHttp } from "./http.ts";
import { describeHttp2 } from "./http2.ts";
import { describeHttp2Ends } from "./http2-ends.ts";
import { describeIdle } from "./idle.ts";
import { describeInterim } from "./interim.ts";
import { describeLimits } from "./limits.ts";
import { describeMessages } from "./messages.ts";
import { describeRecords } from "./records.ts";
import { describeRefusalReasons } from "./refusal-reasons.ts";
import { describeRulePolicies } from "./rule-policies.ts";
import { describeSessions } from "./sessions.ts";
import { describeStrictness } from "./strictness.ts";
import { describeTenants } from "./tenants.ts";
import { describeTls } from "./tls.ts";
import { describeTokens } from "./tokens.ts";
import { describeTraffic } from "./traffic.ts";
import { describeTrailers } from "./trailers.ts";
import { allTraits, type Traits } from "./traits.ts";

export function describeDataPlane(name: string, create: CreateDataPlane, traits: Traits = allTraits): void {
  describe(name, () => {
    describe("HTTP", () => describeHttp(create));
    describe("messages", () => describeMessages(create, traits));
    describe("filters", () => describeFilters(create));
    describe("order of edits", () => describeEditOrder(create));
    describe("TLS", () => describeTls(create));
    if (traits.ownHttp) {
      describe("strictness", () => describeStrictness(create));
      describe("limits", () => describeLimits(create));
    }
    describe("limits of tenants", () => describeTenants(create, traits));
    describe("attempts", () => describeAttempts(create));
    describe("load balancing", () => describeBalancing(create));
    describe("sessions", () => describeSessions(create));
    describe("limits of backends", () => describeBackendLimits(create));
    describe("idle requests", () => describeIdle(create));
    describe("clients", () => describeClients(create));
    describe("settings of rules", () => describeRulePolicies(create));
    describe("compression", () => describeCompression(create));
    describe("direct responses", () => describeDirectResponse(create));
    describe("guards", () => describeGuards(create));
    describe("limits of bodies", () => describeBodyLimit(create));
    describe("external authorization", () => describeExternalAuthorization(create));
    describe("parts of an authorization", () => describeAuthorizationParts(create));
    describe("authorizers over gRPC", () => describeAuthorizers(create));
    describe("credentials", () => describeCredentials(create));
    describe("tokens", () => describeTokens(create));
    describe("authenticated requests", () => describeAuthenticatedRequests(create));
    describe("reasons of refusals", () => describeRefusalReasons(create));
    describe("addresses of clients", () => describeClientAddress(create, traits));
    describe("certificates of clients", () => describeClientCertificates(create));
    describe("ways past client certificates", () => describeClientCertificateBypasses(create));
    describe("limits of clients", () => describeClientLimits(create));
    describe("forged fields", () => describeForgedFields(create));
    describe("counts of traffic", () => describeTraffic(create));
    describe("records of requests", () => describeRecords(create));
    describe("trailers", () => describeTrailers(create, traits));
    describe("interim answers", () => describeInterim(create, traits));
    describe("changes", () => describeChanges(create, traits));
    describe("HTTP/2", () => describeHttp2(create, traits));
    describe("HTTP/2, the end of answers", () => describeHttp2Ends(create, traits));
  });
}
