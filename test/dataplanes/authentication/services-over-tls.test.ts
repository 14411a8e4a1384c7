import { createSecureServer } from "node:http2";
import { createServer } from "node:https";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Authenticator } from "../../../src/dataplanes/authentication/authenticator.ts";
import { frame } from "../../../src/dataplanes/envoy/wire/grpc-frames.ts";
import type { ExternalAuthCheck } from "../../../src/plan/authentication.ts";
import type { BackendItem } from "../../../src/plan/backend.ts";
import { yes } from "../support/authorizer.ts";
import { authority, issue } from "../support/certificates.ts";
import { Backends } from "../support/http-peers.ts";
import { backend, guard } from "../support/plan-builder.ts";

const ours = authority("ours");
const others = authority("others");
const pair = issue(ours, ["auth.example"]);
const REQUEST = { method: "GET", authority: "shop.example", path: "/", query: "", headers: new Map() };

let backends: Backends;
beforeEach(() => {
  backends = new Backends();
});
afterEach(() => backends.release());

const trusting = (id: string, at: number, ca: string): BackendItem => ({
  ...backend(id, [at]),
  tls: { hostname: "auth.example", subjectAltNames: [], authorities: [ca] },
});

/** The status of one request after the other; 200 where it may pass. */
async function ask(check: Partial<ExternalAuthCheck>, items: readonly BackendItem[]): Promise<number[]> {
  const authenticator = new Authenticator({
    guard: (id) =>
      guard(id, {
        type: "externalAuth",
        backend: id,
        path: { type: "prefix", value: "" },
        refusalHeaders: [],
        timeoutMs: 5_000,
        ...check,
      }),
    backend: (id) => items.find((item) => item.id === id),
    clientCertificate: () => undefined,
  });
  const statuses: number[] = [];
  for (const { id } of items) {
    const outcome = await authenticator.check([id], REQUEST, new AbortController().signal);
    statuses.push(outcome.allowed ? 200 : outcome.status);
    // Its connection is free for the next one a moment later.
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  authenticator.close();
  return statuses;
}

describe("services that are asked over TLS", () => {
  test("a connection that one policy trusts is not used for another policy over HTTP", async () => {
    const server = createServer({ cert: pair.cert, key: pair.key }, (_request, response) => response.end());
    const at = await backends.listen(server);
    const items = [
      trusting("a", at, ours.cert),
      trusting("b", at, others.cert),
      trusting("c", at, ours.cert),
    ];
    expect(await ask({}, items)).toEqual([200, 503, 200]);
  });

  test("a connection that one policy trusts is not used for another policy over gRPC", async () => {
    const server = createSecureServer({ cert: pair.cert, key: pair.key });
    server.on("sessionError", () => {});
    server.on("stream", (stream) => {
      stream.on("error", () => {});
      stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": 0 }));
      stream.end(frame(yes()));
    });
    const at = await backends.listen(server);
    const items = [
      trusting("a", at, ours.cert),
      trusting("b", at, others.cert),
      trusting("c", at, ours.cert),
    ];
    expect(await ask({ protocol: "grpc" }, items)).toEqual([200, 503, 200]);
  });
});
