/**
 * Names that nobody has configured, by the thousand: under a wildcard, and belonging to nobody.
 * Envoy and its server keep only so many, and other tenants do not notice. FLOOD=40000 for as many
 * of each kind, with the limits that users have.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { defaultStreamLimits } from "../../../../src/dataplanes/envoy/ads/ads-stream.ts";
import type { EnvoyDataPlane } from "../../../../src/dataplanes/envoy/envoy-data-plane.ts";
import { authority, issue } from "../../support/certificates.ts";
import { createEnvoy } from "../../support/envoy-plane.ts";
import { flood } from "../../support/hello-flood.ts";
import { ask, Backends } from "../../support/http-peers.ts";
import {
  backend,
  certificate,
  forwardTo,
  gateway,
  host,
  port,
  rule,
  secure,
} from "../../support/plan-builder.ts";
import { PlaneUnderTest } from "../../support/plane-under-test.ts";

const WANTED = process.env["FLOOD"];
const NAMES = Number(WANTED ?? 1_500);
const limits =
  WANTED === undefined
    ? { ...defaultStreamLimits, onDemandSecrets: 200, onDemandPerSecond: 200 }
    : defaultStreamLimits;
const WIDTH = 200;
const GIVE_UP_MS = 100;
/**
 * Names that Envoy has asked for or been told of, and the other side does not know yet. Envoy's
 * main thread has a queue of its own, which grows where others take the processor.
 */
const UNDER_WAY = WANTED === undefined ? 600 : 10_000;
const PAUSE_MS = 20;
const QUIET = { timeout: 10_000 };
/** Names of the plan whose certificates Envoy has. */
const CONFIGURED = 1;
/** What a kept name may cost Envoy, generously. */
const BYTES_PER_NAME = 48 * 1024;
const SLACK_BYTES = 8 * 1024 * 1024;

const ca = authority();
const https = port(443, "tls");
const backends = new Backends();
let plane: PlaneUnderTest | undefined;

afterAll(async () => {
  await plane?.close();
  await backends.release();
});

test("names that clients make up cost Envoy and the control plane bounded memory", {
  timeout: 60_000 + NAMES * 10,
}, async () => {
  const tenants = ["shop.example", "*.calm.example", "*.flood.example"].map((hostname) => {
    const shown = certificate(`c-${hostname}`, issue(ca, [hostname]), [hostname]);
    const own = secure(hostname, https, hostname, [shown]);
    return [shown, own, host(own, hostname, [rule({ action: forwardTo("b") })])];
  });
  let envoy: EnvoyDataPlane | undefined;
  const started = await PlaneUnderTest.start(
    (options) => {
      envoy = createEnvoy(options, { limits });
      return envoy;
    },
    [https, ...tenants.flat(), backend("b", [await backends.echo("b")])],
  );
  plane = started;
  const at = started.at(443);
  const process = envoy?.process(gateway);
  const stream = envoy?.replicas[0]?.stream;
  if (process === undefined || stream === undefined) throw new Error("there is no Envoy");

  const allocated = async (): Promise<number> =>
    Number(JSON.parse(await process.admin("GET", "/memory")).allocated);
  const certificates = async (): Promise<number> => {
    const stats = await process.admin("GET", "/stats?filter=on_demand_secret.cert_active");
    return stats.matchAll(/: (\d+)/g).reduce((sum, [, count]) => sum + Number(count), 0);
  };
  const before = await allocated();
  const scopes = await scopesOf(process);

  let over = false;
  const peak = { envoy: 0, stream: 0 };
  const watch = async (): Promise<void> => {
    while (!over) {
      peak.envoy = Math.max(peak.envoy, await certificates());
      peak.stream = Math.max(peak.stream, stream.secrets);
      await sleep(PAUSE_MS);
    }
  };
  let answered = 0;
  const failures: string[] = [];
  const askInLoop = async (names: () => string): Promise<void> => {
    while (!over) {
      const servername = names();
      const said = await ask(at, { host: servername, tls: { ca: ca.cert, servername } }).then(
        ({ status }) => String(status),
        (error: unknown) => String(error),
      );
      if (said === "200") answered++;
      else failures.push(`${servername}: ${said}`);
      await sleep(PAUSE_MS);
    }
  };
  let fresh = 0;
  const others = Promise.all([
    watch(),
    askInLoop(() => "shop.example"),
    askInLoop(() => "www.calm.example"),
    askInLoop(() => `n${fresh++}.calm.example`),
  ]);
  const wild = { port: at, pattern: "n{}.flood.example", from: 0, count: NAMES, width: WIDTH };
  const unknown = { ...wild, pattern: "n{}.nobody.example" };
  const patient = await flood(wild);
  await flood({ ...wild, from: NAMES, giveUpMs: GIVE_UP_MS });
  const refused = await flood(unknown);
  await flood({ ...unknown, from: NAMES, giveUpMs: GIVE_UP_MS });
  over = true;
  await others;

  expect(failures).toEqual([]);
  expect(answered).toBeGreaterThan(0);
  expect(patient.served).toBeGreaterThan(0);
  expect(refused).toEqual({ served: 0, refused: NAMES, left: 0 });
  const most = limits.onDemandSecrets + limits.onDemandPerSecond + UNDER_WAY;
  expect(peak.stream).toBeLessThanOrEqual(most);
  expect(peak.envoy).toBeLessThanOrEqual(most);
  await expect.poll(certificates, QUIET).toBeLessThanOrEqual(limits.onDemandSecrets + CONFIGURED);
  const bytes = limits.onDemandSecrets * BYTES_PER_NAME + SLACK_BYTES;
  await expect.poll(async () => (await allocated()) - before, QUIET).toBeLessThan(bytes);
  expect(await scopesOf(process)).toBe(scopes);
});

async function scopesOf(process: { admin(method: "GET", path: string): Promise<string> }): Promise<number> {
  const dump = await process.admin("GET", "/config_dump?resource=dynamic_scoped_route_configs");
  return dump.match(/"string_key"/g)?.length ?? 0;
}
