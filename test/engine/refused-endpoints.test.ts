import { describe, expect, test } from "vitest";
import { type Key, keyOf } from "../../src/api/key.ts";
import type { Resource } from "../../src/api/resource.ts";
import { Engine } from "../../src/engine/engine.ts";
import type { EngineSettings } from "../../src/engine/foundation/settings.ts";
import { refusedInCluster } from "../../src/kubernetes/special-addresses.ts";
import { readCase } from "./case-file.ts";
import { TEST_SETTINGS } from "./settings.ts";

/** CVE-2021-25740: whoever may write EndpointSlices reaches what only the data plane can reach. */

const { resources } = readCase(new URL("cases/route-endpoints.yaml", import.meta.url).pathname);
const slice = resources.find(({ kind }) => kind === "EndpointSlice") as Resource & {
  readonly metadata: { readonly namespace: string; readonly labels: Readonly<Record<string, string>> };
};
const service = slice.metadata.labels["kubernetes.io/service-name"] ?? "";
const route = keyOf(resources.find(({ kind }) => kind === "HTTPRoute") as Resource);

function engineWith(
  refusedEndpoint: NonNullable<EngineSettings["refusedEndpoint"]> = refusedInCluster,
): Engine {
  const engine = new Engine({ ...TEST_SETTINGS, refusedEndpoint });
  engine.apply(resources.map((resource) => ({ key: keyOf(resource), resource })));
  return engine;
}

/** Another slice of the Service, with one address. */
function added(address: string): { readonly key: Key; readonly resource: Resource } {
  const resource = {
    ...slice,
    metadata: { ...slice.metadata, name: "crafted" },
    addressType: address.includes(":") ? "IPv6" : "IPv4",
    endpoints: [{ addresses: [address], conditions: { ready: true } }],
  } as unknown as Resource;
  return { key: keyOf(resource), resource };
}

function resolvedRefs(engine: Engine): unknown {
  const verdict = engine.verdict(route) as unknown as {
    readonly parents: readonly { readonly conditions: readonly { readonly type: string }[] }[];
  };
  return verdict.parents[0]?.conditions.find(({ type }) => type === "ResolvedRefs");
}

function endpointsOf(engine: Engine): readonly string[] {
  return [...engine.plan()].flatMap((item) =>
    item.type === "backend" && item.service.name === service
      ? item.endpoints.map(({ address }) => address)
      : [],
  );
}

describe("an endpoint that no data plane may be sent to", () => {
  test.each([
    "127.0.0.1",
    "169.254.169.254",
    "0.0.0.0",
    "::1",
    "fe80::1",
    "::ffff:127.0.0.1",
    "64:ff9b::7f00:1",
  ])("at %s makes its Service refused, and the route says why", (address) => {
    const engine = engineWith();
    const before = endpointsOf(engine);
    expect(before.length).toBeGreaterThan(0);
    engine.apply([added(address)]);
    expect(resolvedRefs(engine)).toMatchObject({
      status: "False",
      reason: "UnsupportedValue",
      message: expect.stringContaining(`the endpoint ${address} is a`),
    });
    expect(endpointsOf(engine)).toEqual([]);
    engine.apply([{ key: added(address).key, resource: undefined }]);
    expect(resolvedRefs(engine)).toMatchObject({ status: "True" });
    expect(endpointsOf(engine)).toEqual(before);
  });

  test("any other endpoint that comes recomputes no route", () => {
    const engine = engineWith();
    const { plan, verdicts } = engine.apply([added("10.9.9.9")]);
    expect(plan.upserts.map(({ type }) => type)).toEqual(["backend"]);
    expect([...verdicts.keys()]).toEqual([]);
  });

  test("is left out when its port is known only from a headless Service", () => {
    const key = keyOf(slice)
      .replace(/[^/]+$/, service)
      .replace("EndpointSlice", "Service");
    const found = resources.find((resource) => keyOf(resource) === key);
    const headless = { ...found, spec: { ...(found as { spec: object }).spec, clusterIP: "None" } };
    const crafted = added("10.9.9.9");
    const changes = [
      { key, resource: headless as unknown as Resource },
      { ...crafted, resource: { ...crafted.resource, ports: undefined } as unknown as Resource },
    ];
    const open = engineWith();
    open.apply(changes);
    expect(endpointsOf(open)).toContain("10.9.9.9");
    const closed = engineWith((address, port) =>
      address === "10.9.9.9" && port !== undefined ? "is somebody's own" : undefined,
    );
    closed.apply(changes);
    expect(endpointsOf(closed)).not.toContain("10.9.9.9");
  });
});
