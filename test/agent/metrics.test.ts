/** What Prometheus gets of a data plane pod. */
import { X509Certificate } from "node:crypto";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { openPodAdmin } from "../../src/agent/admin.ts";
import { PodMetrics } from "../../src/agent/metrics.ts";
import { createEmbeddedDataPlane } from "../../src/dataplanes/embedded/embedded-data-plane.ts";
import { TRAFFIC_METRICS } from "../../src/dataplanes/traffic/metric-table.ts";
import { selfSigned } from "../dataplanes/support/certificates.ts";
import { ask, Backends } from "../dataplanes/support/http-peers.ts";
import {
  backend,
  certificate,
  forwardTo,
  host,
  listener,
  port,
  rule,
} from "../dataplanes/support/plan-builder.ts";
import { PlaneUnderTest } from "../dataplanes/support/plane-under-test.ts";

async function scraped(metrics: PodMetrics): Promise<() => Promise<string>> {
  const admin = await openPodAdmin("127.0.0.1:0", {
    isStarted: () => true,
    isReady: () => true,
    metrics: metrics.exposition,
  });
  onTestFinished(() => void admin.close());
  const { port: at } = admin.address() as AddressInfo;
  return async () => {
    const response = await fetch(`http://127.0.0.1:${at}/metrics`);
    expect(response.headers.get("content-type")).toContain("text/plain");
    return await response.text();
  };
}

test("a pod exposes exactly the metrics of traffic, its version, and those of the process", async () => {
  const scrape = await scraped(new PodMetrics("1.2.3"));
  const text = await scrape();
  const names = Array.from(text.matchAll(/^# TYPE (\S+)/gm), ([, name]) => name as string);
  expect(names.filter((name) => !/^(process|nodejs)_/.test(name)).sort()).toEqual(
    [...Object.keys(TRAFFIC_METRICS), "mergeway_build_info", "mergeway_certificate_not_after_seconds"].sort(),
  );
  expect(text).toContain('mergeway_build_info{version="1.2.3"} 1');
});

test("a pod tells when the certificates of its plan end", async () => {
  const metrics = new PodMetrics("0");
  const scrape = await scraped(metrics);
  const one = certificate("certificate:infra/edge:team/web", selfSigned(["a.example"]));
  metrics.look({ upserts: [one], removes: [] });
  const end = Date.parse(new X509Certificate(one.chain).validTo) / 1000;
  const line = `mergeway_certificate_not_after_seconds{namespace="team",name="web"} ${end}\n`;
  expect(await scrape()).toContain(line);
  metrics.look({ upserts: [], removes: [one.id] });
  expect(await scrape()).not.toContain("not_after_seconds{");
});

test("a pod's requests are those of all its workers", async () => {
  const metrics = new PodMetrics("0");
  const scrape = await scraped(metrics);
  const backends = new Backends();
  onTestFinished(() => backends.release());
  const http = port(80);
  const shop = listener("shop", http, "shop.example");
  const plane = await PlaneUnderTest.start(
    (options) => createEmbeddedDataPlane({ ...options, workers: 2, traffic: metrics.traffic }),
    [
      http,
      shop,
      host(shop, "shop.example", [rule({ action: forwardTo("b") })]),
      backend("b", [await backends.echo("b")]),
    ],
  );
  onTestFinished(() => plane.close());
  const requests = Array.from({ length: 40 }, () => ask(plane.at(80), { host: "shop.example" }));
  await Promise.all(requests);
  await expect
    .poll(scrape, { timeout: 20_000 })
    .toContain(
      'mergeway_requests_total{kind="ListenerSet",namespace="shop",name="own",listener_name="shop",route="HTTPRoute/apps/route",code="2xx"} 40\n',
    );
});
