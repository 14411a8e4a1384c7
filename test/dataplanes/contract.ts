/**
 * What every data plane must do, proven with real sockets: a plan goes in, requests go through, answers come out.
 * A data plane takes part by calling `describeDataPlane` with a way to make one.
 */

import { describe } from "vitest";
import { describeAttempts } from "./contract/attempts.ts";
import { describeChanges } from "./contract/changes.ts";
import { describeClients } from "./contract/clients.ts";
import { describeFilters } from "./contract/filters.ts";
import { describeForgedFields } from "./contract/forged-fields.ts";
import { describeHttp } from "./contract/http.ts";
import { describeHttp2 } from "./contract/http2.ts";
import { describeHttp2Ends } from "./contract/http2-ends.ts";
import { describeInterim } from "./contract/interim.ts";
import { describeLimits } from "./contract/limits.ts";
import { describeMessages } from "./contract/messages.ts";
import { describeStrictness } from "./contract/strictness.ts";
import { describeTenants } from "./contract/tenants.ts";
import { describeTls } from "./contract/tls.ts";
import { describeTrailers } from "./contract/trailers.ts";
import { allTraits, type Traits } from "./contract/traits.ts";
import type { CreateDataPlane } from "./plane-under-test.ts";

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
    describe("forged fields", () => describeForgedFields(create));
    describe("trailers", () => describeTrailers(create, traits));
    describe("interim answers", () => describeInterim(create, traits));
    describe("changes", () => describeChanges(create, traits));
    describe("HTTP/2", () => describeHttp2(create));
    describe("HTTP/2, the end of answers", () => describeHttp2Ends(create));
  });
}
