import { beforeEach, describe, expect, it } from "vitest";
import type { Service } from "../../src/api/core.ts";
import type { Gateway, GatewayClass } from "../../src/api/gateway.ts";
import { type Key, keyFor, keyOf } from "../../src/api/key.ts";
import type { Resource } from "../../src/api/resource.ts";
import { desiredManifests } from "../../src/infra/desired.ts";
import { GatewayNames } from "../../src/infra/gateway-names.ts";
import type { Manifest } from "../../src/infra/objects/manifest.ts";
import { infrastructureName } from "../../src/infra/objects/names.ts";
import { fullGateway } from "../chart/full-gateway.ts";

function gateway(name: string, gatewayClassName: string, second = 0): Gateway {
  const creationTimestamp = `2026-01-01T00:00:0${second}Z`;
  return {
    apiVersion: "gateway.networking.k8s.io/v1",
    kind: "Gateway",
    metadata: { name, namespace: "infra", uid: name, creationTimestamp },
    spec: { gatewayClassName, listeners: [] },
  };
}

function gatewayClass(name: string, controllerName = "mergeway.dev/controller"): GatewayClass {
  const apiVersion = "gateway.networking.k8s.io/v1";
  return { apiVersion, kind: "GatewayClass", metadata: { name }, spec: { controllerName } };
}

describe("names of infrastructure", () => {
  let resources: Map<Key, Resource>;
  let names: GatewayNames;

  beforeEach(() => {
    resources = new Map();
    names = new GatewayNames((key) => resources.get(key));
    for (const name of ["c", "b-c"]) put(gatewayClass(name));
  });

  function put(resource: Resource): void {
    resources.set(keyOf(resource), resource);
    names.notice(keyOf(resource), resource);
  }

  function take(key: Key): void {
    resources.delete(key);
    names.notice(key, undefined);
  }

  function found(name: string): Gateway {
    return names.find(keyFor("Gateway", "infra", name)) as Gateway;
  }

  function nameOf(name: string): string {
    return infrastructureName(found(name));
  }

  /** As the API server shows the Service that was made for a Gateway. */
  function serve(name: string, suffix: string): void {
    const metadata = {
      name: `${nameOf(name)}${suffix}`,
      namespace: "infra",
      annotations: { "mergeway.dev/gateway-name": name },
    };
    put({ apiVersion: "v1", kind: "Service", metadata, spec: { type: "LoadBalancer" } } as Service);
  }

  it("are <gateway>-<class>, hyphens or not", () => {
    put(gateway("a-b", "c"));
    put(gateway("x", "b-c"));
    expect(nameOf("a-b")).toBe("a-b-c");
    expect(nameOf("x")).toBe("x-b-c");
  });

  it("are two for Gateways that would be called alike: the older has the plain one", () => {
    put(gateway("a", "b-c", 2));
    put(gateway("a-b", "c", 1));
    expect(nameOf("a-b")).toBe("a-b-c");
    expect(nameOf("a")).toMatch(/^a-b-c-[0-9a-f]{8}$/);
  });

  it.each([
    ["an address", ""],
    ["a tunnel", "-pods"],
  ])("do not change when the other Gateway comes or goes: served at %s", (_title, suffix) => {
    put(gateway("a", "b-c", 2));
    serve("a", suffix);
    expect(nameOf("a")).toBe("a-b-c");
    put(gateway("a-b", "c", 1));
    expect(nameOf("a")).toBe("a-b-c");
    const other = nameOf("a-b");
    expect(other).toMatch(/^a-b-c-[0-9a-f]{8}$/);
    serve("a-b", suffix);
    take(keyFor("Gateway", "infra", "a"));
    expect(nameOf("a-b")).toBe(other);
    take(keyFor("Service", "infra", `a-b-c${suffix}`));
    expect(nameOf("a-b")).toBe(other);
  });

  it("give way to the second Service of another Gateway, which bears a number", () => {
    put(gatewayClass("c-2"));
    const metadata = { name: "a-c-2", namespace: "infra", annotations: { "mergeway.dev/gateway-name": "b" } };
    put({ apiVersion: "v1", kind: "Service", metadata } as Service);
    put(gateway("a", "c-2"));
    expect(nameOf("a")).toMatch(/^a-c-2-[0-9a-f]{8}$/);
  });

  it("are plain beside a Gateway of another controller, and after a change of class", () => {
    put(gatewayClass("b-c", "example.com/other"));
    put(gateway("a", "b-c", 1));
    put(gateway("a-b", "c", 2));
    expect(nameOf("a-b")).toBe("a-b-c");
    put(gatewayClass("b-c"));
    expect(nameOf("a-b")).not.toBe("a-b-c");
    put(gateway("a", "c", 1));
    expect(nameOf("a-b")).toBe("a-b-c");
  });

  it("belong to objects of one Gateway each, and so do the pods that are selected", () => {
    put(gateway("a", "b-c", 2));
    put(gateway("a-b", "c", 1));
    const made = ["a", "a-b"].map((name) =>
      desiredManifests({ ...fullGateway.request, gateway: found(name) }, fullGateway.context),
    );
    const identities = made.flat().map(({ kind, metadata }) => `${kind}/${metadata.name}`);
    expect(new Set(identities).size).toBe(identities.length);
    const [one, other] = made.map((manifests) => JSON.stringify(selectorOf(manifests)));
    expect(one).toBeDefined();
    expect(one).not.toBe(other);
  });
});

function selectorOf(manifests: readonly Manifest[]): unknown {
  const deployment = manifests.find(({ kind }) => kind === "Deployment") as {
    spec: { selector: unknown };
  } & Manifest;
  return deployment.spec.selector;
}
