import { expect, test } from "vitest";
import { desiredManifests } from "../../src/infra/desired.ts";
import { RESERVED_PORTS } from "../../src/infra/objects/names.ts";
import { fullGateway } from "../chart/full-gateway.ts";

test.each(["embedded", "envoy"] as const)(
  "ports of a pod of %s that are no listener's are reserved",
  (dataPlane) => {
    const { request, context } = fullGateway;
    const parameters = { ...request.parameters, dataPlane };
    const text = JSON.stringify(desiredManifests({ ...request, parameters }, context));
    const ports = [...text.matchAll(/"containerPort":(\d+)/g)].map(([, port]) => Number(port));
    expect(ports.length).toBeGreaterThan(0);
    for (const port of ports) {
      expect(port).toBeGreaterThanOrEqual(RESERVED_PORTS.from);
      expect(port).toBeLessThanOrEqual(RESERVED_PORTS.to);
    }
  },
);
