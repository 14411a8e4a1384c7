import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ControllerMetrics } from "../../src/controller/metrics.ts";
import type { StateView } from "../../src/status/metrics/state-snapshot.ts";

const GATEWAY = {
  apiVersion: "gateway.networking.k8s.io/v1",
  kind: "Gateway",
  metadata: { name: "shared", namespace: "infra" },
  spec: { gatewayClassName: "public" },
} as const;

let asked = 0;
const VIEW: StateView = {
  controllerName: "mergeway.dev/gateway-controller",
  resources: new Map([["Gateway/infra/shared", GATEWAY]]),
  verdicts: () => {
    asked++;
    const verdict = { type: "gateway", gateway: "Gateway/infra/shared", generation: 1 } as const;
    return new Map([["Gateway/infra/shared", { ...verdict, conditions: [], listeners: [] }]]);
  },
};

const SAMPLE = 'gatewayapi_gateway_info{namespace="infra",name="shared",gatewayclass_name="public"} 1\n';

describe("the controller's metrics of the state", () => {
  let metrics: ControllerMetrics;
  let server: Server;
  let base: string;

  beforeEach(async () => {
    asked = 0;
    metrics = new ControllerMetrics();
    server = await metrics.serve("127.0.0.1:0");
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });

  afterEach(() => void server.close());

  test("are nowhere unless they are turned on", async () => {
    metrics.leading(true);
    expect((await fetch(`${base}/metrics/state`)).status).toBe(404);
  });

  test("are not among the others, which name no tenant", async () => {
    metrics.leading(true);
    metrics.showState(VIEW);
    expect(await (await fetch(`${base}/metrics`)).text()).not.toContain("gatewayapi_");
    expect(asked).toBe(0);
  });

  test("have samples on the leader alone", async () => {
    metrics.showState(VIEW);
    const told = async (): Promise<string> => (await fetch(`${base}/metrics/state`)).text();
    expect(await told()).not.toContain(SAMPLE);
    metrics.leading(true);
    expect(await told()).toContain(SAMPLE);
    metrics.leading(false);
    expect(await told()).not.toContain(SAMPLE);
  });

  test("are compressed for whoever accepts that, and complete for whoever does not", async () => {
    metrics.showState(VIEW);
    metrics.leading(true);
    const asking = (accept: string): Promise<Response> =>
      fetch(`${base}/metrics/state`, { headers: { "accept-encoding": accept } });
    const zipped = await asking("gzip");
    expect(zipped.headers.get("content-encoding")).toBe("gzip");
    expect(await zipped.text()).toContain(SAMPLE);
    for (const accept of ["identity", "gzip;q=0", "br, gzip; q=0.0"]) {
      const plain = await asking(accept);
      expect(plain.headers.get("content-encoding"), accept).toBeNull();
      expect(await plain.text()).toContain(SAMPLE);
    }
  });

  test("answer 500 when they cannot be made, and the process goes on", async () => {
    metrics.leading(true);
    metrics.showState({
      ...VIEW,
      verdicts: () => {
        throw new Error("a bug");
      },
    });
    expect((await fetch(`${base}/metrics/state`)).status).toBe(500);
    expect((await fetch(`${base}/metrics`)).status).toBe(200);
  });
});
