/**
 * What every data plane must do, proven with real sockets: a plan goes in, requests go through,
 * answers come out. A data plane takes part by calling `describeDataPlane` with a way to make one.
 */

import { describe } from "vitest";
import type { CreateDataPlane } from "../support/plane-under-test.ts";
import { describeAttempts } from "./attempts.ts";
import { describeChanges } from "./changes.ts";
import { describeClientAddress } from "./client-address.ts";
import { describeClients } from "./clients.ts";
import { describeFilters } from "./filters.ts";
import { describeForgedFields } from "./forged-fields.ts";
import { describeGuards } from "./guards.ts";
import { describeHttp } from "./http.ts";
import { describeHttp2 } from "./http2.ts";
import { describeHttp2Ends } from "./http2-ends.ts";
import { describeInterim } from "./interim.ts";
import { describeLimits } from "./limits.ts";
import { describeMessages } from "./messages.ts";
import { describeStrictness } from "./strictness.ts";
import { describeTenants } from "./tenants.ts";
import { describeTls } from "./tls.ts";
import { describeTrailers } from "./trailers.ts";
import { allTraits, type Traits } from "./traits.ts";

export function describeDataPlane(name: string, create: CreateDataPlane, traits: Traits = allTraits): void {
  describe(name, () => {
    describe("HTTP", () => describeHttp(create));
    describe("messages", () => describeMessages(create, traits));
    describe("filters", () => describeFilters(create));
    describe("TLS", () => describeTls(create));
    if (traits.ownHttp) {
      describe("strictness", () => describeStrictness(create));
      describe("limits", () => describeLimits(create));
    }
    describe("limits of tenants", () => describeTenants(create, traits));
    describe("attempts", () => describeAttempts(create));
    describe("clients", () => describeClients(create));
    describe("guards", () => describeGuards(create));
    describe("addresses of clients", () => describeClientAddress(create, traits));
    describe("forged fields", () => describeForgedFields(create));
    describe("trailers", () => describeTrailers(create, traits));
    describe("interim answers", () => describeInterim(create, traits));
    describe("changes", () => describeChanges(create, traits));
    describe("HTTP/2", () => describeHttp2(create, traits));
    describe("HTTP/2, the end of answers", () => describeHttp2Ends(create));
  });
}
