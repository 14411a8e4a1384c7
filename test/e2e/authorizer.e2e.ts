/**
 * Open Policy Agent as authorizer, over Envoy's gRPC protocol, asked by both data planes. No
 * cluster is needed for it.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createEmbeddedDataPlane } from "../../src/dataplanes/embedded/embedded-data-plane.ts";
import { build, builtFile } from "../../tools/programs/build.ts";
import { setStage } from "../dataplanes/contract/stage.ts";
import { createEnvoy } from "../dataplanes/support/envoy-plane.ts";
import { ask } from "../dataplanes/support/http-peers.ts";
import { lastingPort } from "../dataplanes/support/lasting-port.ts";
import { backend, forwardTo, guard, host, listener, port, rule } from "../dataplanes/support/plan-builder.ts";
import type { CreateDataPlane } from "../dataplanes/support/plane-under-test.ts";
import { eventuallyWithin } from "../support/eventually.ts";

const POLICY = `package envoy.authz

import rego.v1

default allow := {"allowed": false, "http_status": 401, "body": "who are you?", "headers": {"www-authenticate": "Bearer"}}

http := input.attributes.request.http

allow := {
  "allowed": true,
  "headers": {"x-user": "ann"},
  "request_headers_to_remove": ["x-secret"],
  "response_headers_to_add": {"set-cookie": "seen=1"},
} if {
  http.method == "GET"
  http.headers.authorization == "Bearer good"
  input.parsed_path[0] == "shop"
}

allow := true if {
  http.method == "POST"
  input.parsed_body.amount < 100
}
`;

let opa: ChildProcess;
let authorizer: number;
const folder = mkdtempSync(join(tmpdir(), "authorizer-"));

beforeAll(async () => {
  await build(["opa"]);
  authorizer = await lastingPort();
  const file = join(folder, "policy.rego");
  writeFileSync(file, POLICY);
  const settings = [
    `plugins.envoy_ext_authz_grpc.addr=127.0.0.1:${authorizer}`,
    "plugins.envoy_ext_authz_grpc.path=envoy/authz/allow",
  ].flatMap((setting) => ["--set", setting]);
  const flags = ["--addr=127.0.0.1:0", "--skip-version-check", ...settings];
  opa = spawn(builtFile("opa", "opa-envoy-plugin"), ["run", "--server", ...flags, file], {
    stdio: "ignore",
  });
  await eventuallyWithin(60, 200)(async () => expect(await isOpen(authorizer)).toBe(true));
});

afterAll(() => {
  opa?.kill();
  rmSync(folder, { recursive: true, force: true });
});

function isOpen(at: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(at, "127.0.0.1");
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}

const PLANES: readonly (readonly [string, CreateDataPlane])[] = [
  ["embedded", (options) => createEmbeddedDataPlane({ ...options, workers: 0 })],
  ["Envoy", (options) => createEnvoy(options)],
];

describe.each(PLANES)("%s", (_name, create) => {
  const stage = setStage(create);

  test("Open Policy Agent decides by method, path, token and body, and says what goes where", async () => {
    const http = port(80);
    const shop = listener("shop", http, "shop.example");
    const plane = await stage.start([
      http,
      shop,
      guard("g", {
        type: "externalAuth",
        protocol: "grpc",
        backend: "opa",
        path: { type: "prefix", value: "" },
        refusalHeaders: [],
        maxBodyBytes: 1_000,
        timeoutMs: 5_000,
      }),
      host(shop, "shop.example", [rule({ action: forwardTo("b"), guards: ["g"] })]),
      backend("b", [await stage.backends.echo("b")]),
      backend("opa", [authorizer]),
    ]);
    const get = (path: string, more: object = {}): ReturnType<typeof ask> =>
      ask(plane.at(80), { host: "shop.example", path, ...more });
    const refused = await get("/shop");
    expect([refused.status, refused.body]).toEqual([401, "who are you?"]);
    expect(refused.headers["www-authenticate"]).toBe("Bearer");
    const headers = { authorization: "Bearer good", "x-user": "root", "x-secret": "s" };
    const passed = await get("/shop/a?b=c", { headers });
    expect([passed.status, passed.seen.url]).toEqual([200, "/shop/a?b=c"]);
    expect([passed.seen.headers["x-user"], passed.seen.headers["x-secret"]]).toEqual(["ann", undefined]);
    expect(passed.headers["set-cookie"]).toEqual(["seen=1"]);
    expect((await get("/other", { headers })).status).toBe(401);
    const json = { "content-type": "application/json" };
    const pay = (amount: number): ReturnType<typeof ask> =>
      get("/pay", { method: "POST", headers: json, body: JSON.stringify({ amount }) });
    expect((await pay(99)).seen.body).toBe('{"amount":99}');
    expect((await pay(100)).status).toBe(401);
  });
});
