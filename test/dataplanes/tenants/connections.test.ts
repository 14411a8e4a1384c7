/** Connections of a tenant at its limit, to the embedded data plane. */

import { once } from "node:events";
import type { Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { describe, expect, test } from "vitest";
import { createEmbeddedDataPlane } from "../../../src/dataplanes/embedded/embedded-data-plane.ts";
import { TrafficCounts } from "../../../src/dataplanes/traffic/traffic-counts.ts";
import { REFUSED_CONNECTIONS } from "../../../src/dataplanes/traffic/traffic-numbers.ts";
import type { PlanItem } from "../../../src/plan/plan.ts";
import { DEFAULT_TENANT_LIMITS } from "../../../src/plan/tenant-limits.ts";
import { setStage } from "../contract/stage.ts";
import { authority, issue } from "../support/certificates.ts";
import {
  backend,
  certificate,
  forwardTo,
  gateway,
  host,
  listener,
  port,
  rule,
  secure,
} from "../support/plan-builder.ts";
import type { PlaneUnderTest } from "../support/plane-under-test.ts";

const ca = authority();
const LIMIT = 2;
const limits: PlanItem = {
  type: "gateway",
  id: "gateway",
  gateway,
  tenantLimits: { ...DEFAULT_TENANT_LIMITS, connections: LIMIT },
};

describe.each([{ workers: 0 }, { workers: 1 }])(
  "connections of a tenant, $workers workers",
  ({ workers }) => {
    let traffic: TrafficCounts;
    const stage = setStage((options) => {
      traffic = new TrafficCounts();
      return createEmbeddedDataPlane({ ...options, workers, traffic });
    });

    function refused(): readonly string[] {
      return [...traffic.listeners()].flatMap(([{ namespace }, { sums }]) =>
        Array.from({ length: sums[REFUSED_CONNECTIONS] ?? 0 }, () => namespace),
      );
    }

    /** Whether the handshake comes to its end. */
    async function opens(plane: PlaneUnderTest, servername: string): Promise<Socket | undefined> {
      const socket = connectTls({ host: "127.0.0.1", port: plane.at(443), ca: ca.cert, servername });
      stage.sockets.keep(socket);
      const result = await Promise.race([
        once(socket, "secureConnect").then(
          () => true,
          () => false,
        ),
        once(socket, "close").then(() => false),
      ]);
      return result ? socket : undefined;
    }

    test("are counted by server name before the handshake, and others have their own", async () => {
      const tls = port(443, "tls");
      const forA = certificate("c-a", issue(ca, ["a.example"]));
      const forB = certificate("c-b", issue(ca, ["b.example"]));
      const a = secure("a", tls, "a.example", [forA]);
      const b = secure("b", tls, "b.example", [forB]);
      const plane = await stage.start([limits, tls, a, b, forA, forB]);
      const open = [await opens(plane, "a.example"), await opens(plane, "a.example")];
      expect(open.every((socket) => socket !== undefined)).toBe(true);

      expect(await opens(plane, "a.example")).toBeUndefined();
      await expect.poll(refused, { timeout: 10_000 }).toEqual(["a"]);
      for (let count = 0; count < LIMIT; count++) expect(await opens(plane, "b.example")).toBeDefined();

      open[0]?.destroy();
      await expect
        .poll(async () => (await opens(plane, "a.example")) !== undefined, { timeout: 10_000 })
        .toBe(true);
    });

    test("are counted for as long as a stream lasts, terminated or not, and on ports of TCP", async () => {
      const tls = port(443, "tls");
      const tcp = port(5432, "tcp");
      const echoing = await stage.sockets.serve((socket) => socket.pipe(socket));
      const through = listener("through", tls, "through.example", {
        protocol: "TLS",
        tls: { mode: "Passthrough", certificates: [] },
      });
      const database = listener("database", tcp, "", { protocol: "TCP" });
      const action = forwardTo("b");
      const plane = await stage.start([
        limits,
        tls,
        tcp,
        through,
        database,
        host(through, "through.example", [rule({ action, kind: "TLSRoute" })]),
        host(database, "", [rule({ action, kind: "TCPRoute" })]),
        backend("b", [echoing], { protocol: "tcp" }),
      ]);
      const echoes = async (): Promise<Socket | undefined> => {
        const socket = await stage.sockets.connect(plane.at(5432));
        socket.write("x");
        return (await firstOf(socket)) === undefined ? undefined : socket;
      };
      const first = await echoes();
      expect(first).toBeDefined();
      expect(await echoes()).toBeDefined();
      expect(await echoes()).toBeUndefined();
      first?.destroy();
      await expect.poll(async () => (await echoes()) !== undefined, { timeout: 10_000 }).toBe(true);

      // The hello comes back from an echo: that is as far as a handshake gets here, and enough to
      // be counted.
      const hello = helloFor("through.example");
      const reached = async (): Promise<boolean> => {
        const socket = await stage.sockets.connect(plane.at(443));
        socket.write(hello);
        return (await firstOf(socket)) !== undefined;
      };
      expect([await reached(), await reached(), await reached()]).toEqual([true, true, false]);
    });

    test("without TLS are their host's once it is asked for", async () => {
      const http = port(80);
      const a = listener("a", http, "a.example");
      const b = listener("b", http, "b.example");
      const plane = await stage.start([
        limits,
        http,
        a,
        b,
        host(a, "a.example", [rule({ action: forwardTo("echo") })]),
        host(b, "b.example", [rule({ action: forwardTo("echo") })]),
        backend("echo", [await stage.backends.echo("echo")]),
      ]);
      const statusOf = async (socket: Socket, name: string): Promise<string> => {
        socket.write(`GET / HTTP/1.1\r\nHost: ${name}\r\n\r\n`);
        const [bytes] = (await once(socket, "data")) as [Buffer];
        return String(bytes).slice(9, 12);
      };
      const sockets = [];
      for (let count = 0; count <= LIMIT; count++) sockets.push(await stage.sockets.connect(plane.at(80)));
      const [first, second, third] = sockets as [Socket, Socket, Socket];
      expect(await statusOf(first, "a.example")).toBe("200");
      expect(await statusOf(second, "a.example")).toBe("200");
      expect(await statusOf(third, "a.example")).toBe("503");
      const record = await plane.record(({ status }) => status === 503);
      expect(record.reason).toBe("TenantConnectionLimit");
      // A connection that turns to another tenant is that one's from then on.
      expect(await statusOf(first, "b.example")).toBe("200");
      const fourth = await stage.sockets.connect(plane.at(80));
      expect(await statusOf(fourth, "a.example")).toBe("200");
    });
  },
);

/** What comes first; undefined: the end does. */
function firstOf(socket: Socket): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const end = (): void => resolve(undefined);
    socket.once("data", resolve).once("end", end).once("close", end).once("error", end);
  });
}

/** A ClientHello with nothing but a server name. */
function helloFor(name: string): Buffer {
  const text = Buffer.from(name, "latin1");
  const entry = Buffer.concat([Buffer.from([0]), uint16(text.length), text]);
  const list = Buffer.concat([uint16(entry.length), entry]);
  const extension = Buffer.concat([uint16(0), uint16(list.length), list]);
  const body = Buffer.concat([
    Buffer.from([3, 3]),
    Buffer.alloc(32),
    Buffer.from([0]),
    uint16(2),
    Buffer.from([0x13, 1]),
    Buffer.from([1, 0]),
    uint16(extension.length),
    extension,
  ]);
  const handshake = Buffer.concat([Buffer.from([1, 0]), uint16(body.length), body]);
  return Buffer.concat([Buffer.from([22, 3, 1]), uint16(handshake.length), handshake]);
}

function uint16(value: number): Buffer {
  return Buffer.from([value >> 8, value & 0xff]);
}
