import { once } from "node:events";
import { connect, type IncomingHttpHeaders, type OutgoingHttpHeaders } from "node:http2";
import { afterEach, beforeEach } from "vitest";
import type { PlanItem } from "../../../src/plan/plan.ts";
import { Backends } from "../support/http-peers.ts";
import { type CreateDataPlane, type PlaneOptions, PlaneUnderTest } from "../support/plane-under-test.ts";
import { Sockets } from "../support/sockets.ts";

/** What the tests of one part of the contract share; everything is closed after each test. */
export interface Stage {
  readonly backends: Backends;
  readonly sockets: Sockets;
  start(items: readonly PlanItem[], options?: Partial<PlaneOptions>): Promise<PlaneUnderTest>;
  /** The header of the answer over HTTP/2 with prior knowledge, for shop.example unless said. */
  askHttp2(at: number, headers: OutgoingHttpHeaders): Promise<IncomingHttpHeaders>;
  /** Something else to be closed. */
  onRelease(release: () => unknown): void;
}

export function setStage(create: CreateDataPlane): Stage {
  const releases: (() => unknown)[] = [];
  let backends: Backends;
  let sockets: Sockets;
  beforeEach(() => {
    backends = new Backends();
    sockets = new Sockets();
  });
  afterEach(async () => {
    await Promise.all(releases.splice(0).map((release) => release()));
    await sockets.release();
    await backends.release();
  });
  return {
    get backends() {
      return backends;
    },
    get sockets() {
      return sockets;
    },
    async start(items, options = {}) {
      const plane = await PlaneUnderTest.start(create, items, options);
      releases.push(() => plane.close());
      return plane;
    },
    async askHttp2(at, headers) {
      const session = connect(`http://127.0.0.1:${at}`);
      releases.push(() => session.destroy());
      if (headers[":protocol"] !== undefined) await once(session, "remoteSettings");
      const stream = session.request({ ":path": "/", ":authority": "shop.example", ...headers });
      const [head] = (await once(stream, "response")) as [IncomingHttpHeaders];
      stream.resume();
      return head;
    },
    onRelease(release) {
      releases.push(release);
    },
  };
}
