/**
 * The server alone, with clients that only pretend to be Envoys: who may have what, and whose word
 * counts.
 */

import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";
import { afterEach, describe, expect, test } from "vitest";
import { createEnvoyDataPlane, type EnvoyDataPlane } from "../../../src/dataplanes/envoy/envoy-data-plane.ts";
import { frame, GrpcFrameReader } from "../../../src/dataplanes/envoy/wire/grpc-frames.ts";
import * as proto from "../../../src/dataplanes/envoy/wire/proto.ts";
import {
  type EncodedField,
  type Message,
  message,
  nested,
  read,
  text,
  texts,
} from "../../../src/dataplanes/envoy/wire/protobuf.ts";
import type { ItemReport } from "../../../src/plan/item-report.ts";
import { lastingPort } from "../support/lasting-port.ts";
import { backend, forwardTo, host, listener, port, rule } from "../support/plan-builder.ts";

const METHOD = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources";
const types = {
  cluster: "type.googleapis.com/envoy.config.cluster.v3.Cluster",
  endpoints: "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment",
  scope: "type.googleapis.com/envoy.config.route.v3.ScopedRouteConfiguration",
  listener: "type.googleapis.com/envoy.config.listener.v3.Listener",
  extension: "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig",
} as const;

describe("replicas", () => {
  const planes: EnvoyDataPlane[] = [];
  const clients: Client[] = [];
  afterEach(async () => {
    for (const client of clients.splice(0)) client.session.destroy();
    await Promise.all(planes.splice(0).map((plane) => plane.close({ graceMs: 0 })));
  });

  async function serve(): Promise<{
    readonly plane: EnvoyDataPlane;
    readonly at: number;
    reports: Map<string, ItemReport>;
  }> {
    const at = await lastingPort();
    const plane = createEnvoyDataPlane({
      bind: { address: "127.0.0.1" },
      serve: {
        listen: { port: at, host: "127.0.0.1" },
        gatewayOf: ({ id, cluster }) => (id.startsWith("known") ? cluster : undefined),
      },
    });
    planes.push(plane);
    const reports = new Map<string, ItemReport>();
    plane.onReport((all) => {
      for (const report of all) reports.set(report.id, report);
    });
    const http = port(80);
    const shop = listener("shop", http, "shop.example");
    const foreign = { ...port(81), gateway: "other/edge" };
    plane.apply({
      upserts: [
        http,
        shop,
        host(shop, "shop.example", [rule({ action: forwardTo("backend:infra/edge:apps/b:80") })]),
        backend("backend:infra/edge:apps/b:80", [1]),
        foreign,
        listener("theirs", foreign, "theirs.example", { gateway: "other/edge" }),
      ],
      removes: [],
    });
    return { plane, at, reports };
  }

  function join(at: number, id: string, gateway: string): Client {
    const client = new Client(at, id, gateway);
    clients.push(client);
    return client;
  }

  test("unknown clients get nothing", async () => {
    const { at } = await serve();
    const unknown = join(at, "unknown", "infra/edge");
    unknown.ask(types.cluster);
    expect(await unknown.status).toBe("16");
    expect(unknown.got).toEqual([]);
  });

  test("each receives its own Gateway only, and no resource before what it refers to", async () => {
    const { at } = await serve();
    const mine = join(at, "known-1", "infra/edge");
    mine.ask(types.scope);
    mine.ask(types.cluster);
    await expect.poll(() => mine.got).toContain("apps/b:80");
    expect(mine.got).toEqual(["apps/b:80"]);
    mine.ask(types.endpoints, ["apps/b:80"]);
    await expect.poll(() => mine.got).toEqual(["apps/b:80", "apps/b:80", "80/shop.example"]);
    const other = join(at, "known-2", "other/edge");
    other.ask(types.scope);
    await expect.poll(() => other.got).toEqual(["81/theirs.example"]);
  });

  test("the NACK of one replica makes the scope rejected, with our own message, until it leaves", async () => {
    const { at, reports } = await serve();
    const good = join(at, "known-1", "infra/edge");
    const bad = join(at, "known-2", "infra/edge");
    bad.refuses = "80/shop.example";
    for (const client of [good, bad]) {
      for (const type of [types.cluster, types.scope, types.listener]) client.ask(type);
      client.ask(types.endpoints, ["apps/b:80"]);
    }
    await expect
      .poll(() => reports.get("shop"))
      .toMatchObject({
        state: "rejected",
        message: "the data plane refuses the configuration of a hostname of the listener",
      });
    await expect.poll(() => reports.get("port-80")).toEqual({ id: "port-80", state: "programmed" });
    bad.session.destroy();
    await expect.poll(() => reports.get("shop")).toEqual({ id: "shop", state: "programmed" });
  });

  test.each(["cluster", "endpoints"] as const)(
    "refused %s are reported with their backend, and its scope no longer needs them",
    async (kind) => {
      const { at, reports } = await serve();
      const client = join(at, "known-1", "infra/edge");
      client.refuses = "apps/b:80";
      client.refusedType = types[kind];
      for (const type of [types.cluster, types.scope, types.listener]) client.ask(type);
      client.ask(types.endpoints, ["apps/b:80"]);
      const id = "backend:infra/edge:apps/b:80";
      await expect
        .poll(() => reports.get(id))
        .toEqual({
          id,
          state: "rejected",
          reason: "Refused",
          message: "the data plane refuses the configuration of the backend",
        });
      await expect.poll(() => client.got).toContain("80/shop.example");
      await expect.poll(() => reports.get("shop")).toEqual({ id: "shop", state: "programmed" });
    },
  );

  test("a NACK of the wildcard table is reported with the listeners that wait for it, until an ACK", async () => {
    const { plane, at, reports } = await serve();
    const client = join(at, "known-1", "infra/edge");
    for (const type of [types.cluster, types.scope, types.listener]) client.ask(type);
    client.ask(types.endpoints, ["apps/b:80"]);
    client.ask(types.extension, ["mergeway.tenancy"]);
    await expect.poll(() => reports.get("shop")).toEqual({ id: "shop", state: "programmed" });
    client.refuses = "mergeway.tenancy";
    plane.apply({ upserts: [listener("wild", port(80), "*.w.example")], removes: [] });
    await expect
      .poll(() => reports.get("wild"))
      .toEqual({
        id: "wild",
        state: "rejected",
        reason: "Refused",
        message: "the data plane refuses the configuration of a hostname of the listener",
      });
    client.refuses = "";
    plane.apply({ upserts: [listener("more", port(80), "*.v.example")], removes: [] });
    for (const id of ["more", "wild"])
      await expect.poll(() => reports.get(id)).toEqual({ id, state: "programmed" });
  });
});

/** Takes whatever it is sent, but for one resource. */
class Client {
  readonly session: ClientHttp2Session;
  readonly got: string[] = [];
  readonly status: Promise<string>;
  refuses = "";
  /** Of that type only, if it is given. */
  refusedType = "";
  readonly #stream: ClientHttp2Stream;
  readonly #node: Message<proto.Node>;
  #introduced = false;

  constructor(at: number, id: string, gateway: string) {
    this.#node = message(text(proto.Node.id, id), text(proto.Node.cluster, gateway));
    this.session = connect(`http://127.0.0.1:${at}`);
    this.session.on("error", () => {});
    this.#stream = this.session.request({
      ":method": "POST",
      ":path": METHOD,
      "content-type": "application/grpc",
      te: "trailers",
    });
    this.#stream.on("error", () => {});
    this.status = new Promise((resolve) => {
      this.#stream.on("trailers", (trailers) => resolve(String(trailers["grpc-status"])));
    });
    const reader = new GrpcFrameReader(1_000_000);
    this.#stream.on("data", (chunk: Buffer) => {
      for (const bytes of reader.push(chunk)) this.#take(bytes);
    });
  }

  ask(type: string, names: readonly string[] = []): void {
    const { typeUrl, resourceNamesSubscribe } = proto.DeltaDiscoveryRequest;
    this.#send(text(typeUrl, type), ...texts(resourceNamesSubscribe, names));
  }

  #take(bytes: Uint8Array): void {
    const response = read<proto.DeltaDiscoveryResponse>(bytes);
    const names = response
      .messages(proto.DeltaDiscoveryResponse.resources)
      .map((resource) => resource.text(proto.Resource.name));
    const type = response.text(proto.DeltaDiscoveryResponse.typeUrl);
    const isMeant = this.refusedType === "" || type === this.refusedType;
    const refused = isMeant && names.includes(this.refuses);
    if (!refused) this.got.push(...names);
    this.#send(
      text(proto.DeltaDiscoveryRequest.typeUrl, type),
      text(proto.DeltaDiscoveryRequest.responseNonce, response.text(proto.DeltaDiscoveryResponse.nonce)),
      refused
        ? nested(proto.DeltaDiscoveryRequest.errorDetail, message(text(proto.Status.message, "no thanks")))
        : undefined,
    );
  }

  #send(...fields: readonly EncodedField<proto.DeltaDiscoveryRequest>[]): void {
    const node = this.#introduced ? undefined : nested(proto.DeltaDiscoveryRequest.node, this.#node);
    this.#introduced = true;
    this.#stream.write(frame(message(node, ...fields)));
  }
}
