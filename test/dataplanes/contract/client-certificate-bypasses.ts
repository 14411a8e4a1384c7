import { once } from "node:events";
import {
  type ClientHttp2Session,
  connect as connectHttp2,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from "node:http2";
import { expect, test } from "vitest";
import type { ClientValidation } from "../../../src/plan/client-validation.ts";
import type { ListenerItem } from "../../../src/plan/plan.ts";
import { authority, intermediate, issue, type TestCertificate } from "../support/certificates.ts";
import { ask } from "../support/http-peers.ts";
import { backend, certificate, forwardTo, host, port, rule, secure } from "../support/plan-builder.ts";
import type { CreateDataPlane, PlaneUnderTest } from "../support/plane-under-test.ts";
import { setStage } from "./stage.ts";

const tls = port(443, "tls");
const ca = authority();
const clients = authority("clients");
const alice = issue(clients, ["alice.example"]);
const bob = issue(clients, ["bob.example"]);
const names = ["a.example", "b.example"];
const shown = certificate("shown", issue(ca, names), names);
const onlyValid: ClientValidation = { mode: "AllowValidOnly", authorities: [clients.cert] };
const webSocket = {
  connection: "Upgrade",
  upgrade: "websocket",
  "sec-websocket-version": "13",
  "sec-websocket-key": "bWVyZ2V3YXkgb3ZlciBoMg==",
};
const GRPC = { ":method": "POST", "content-type": "application/grpc", te: "trailers" };
const WEBSOCKET = { ":method": "CONNECT", ":protocol": "websocket", "sec-websocket-version": "13" };

/** Ways past the certificates that clients are asked for. */
export function describeClientCertificateBypasses(create: CreateDataPlane): void {
  const stage = setStage(create);
  const b = secure("b", tls, "b.example", [shown]);

  function asking(clientValidation: ClientValidation): ListenerItem {
    const a = secure("a", tls, "a.example", [shown]);
    return { ...a, tls: { mode: "Terminate", certificates: [shown.id], clientValidation } };
  }

  async function start(a: ListenerItem): Promise<PlaneUnderTest> {
    const rules = [rule({ action: forwardTo("echo") })];
    const hosts = [host(a, "a.example", rules), host(b, "b.example", rules)];
    return stage.start([tls, shown, a, b, ...hosts, backend("echo", [await stage.backends.echo("echo")])]);
  }

  /** The status, or that there was no handshake. */
  const reach = (plane: PlaneUnderTest, as?: TestCertificate, headers = {}): Promise<number | "refused"> =>
    ask(plane.at(443), {
      host: "a.example",
      headers,
      tls: { ca: ca.cert, servername: "a.example", ...as },
    }).then(
      ({ status }) => status,
      () => "refused",
    );

  function http2(plane: PlaneUnderTest, servername: string, as?: TestCertificate): ClientHttp2Session {
    const session = connectHttp2(`https://127.0.0.1:${plane.at(443)}`, { ca: ca.cert, servername, ...as });
    stage.onRelease(() => session.destroy());
    return session.on("error", () => {});
  }

  async function over(
    session: ClientHttp2Session,
    name: string,
    more: OutgoingHttpHeaders = {},
  ): Promise<number> {
    const stream = session.request({ ":path": "/", ":authority": name, ":scheme": "https", ...more });
    stream.end();
    const [head] = (await once(stream, "response")) as [IncomingHttpHeaders];
    stream.resume();
    return Number(head[":status"]);
  }

  test("WebSockets and gRPC over a connection for another name are sent back, too", async () => {
    const plane = await start(asking(onlyValid));
    const elsewhere = http2(plane, "b.example");
    await once(elsewhere, "remoteSettings");
    for (const name of ["a.example", "A.EXAMPLE", "a.example."]) {
      expect(await over(elsewhere, name, WEBSOCKET), name).toBe(421);
      const lies = { ca: ca.cert, servername: "b.example", checkServerIdentity: () => undefined };
      const { status } = await ask(plane.at(443), { host: name, headers: webSocket, tls: lies });
      expect(status, name).toBe(421);
      // Answered in the words of gRPC or with 421, and never by the backend.
      const call = elsewhere.request({ ":path": "/s/m", ":authority": name, ...GRPC });
      call.end();
      const [head] = (await once(call, "response")) as [IncomingHttpHeaders];
      call.resume();
      expect(Number(head[":status"]) === 421 || head["grpc-status"] !== undefined, name).toBe(true);
      expect(head["content-type"], name).not.toBe("application/json");
    }
    expect(await reach(plane, undefined, webSocket)).toBe("refused");
    expect(await over(http2(plane, "a.example", alice), "a.example")).toBe(200);
  });

  test("a certificate that has ended or not begun is refused, and so is the wrong issuer's", async () => {
    const plane = await start(asking(onlyValid));
    const hour = 3_600_000;
    const ended = issue(clients, ["alice.example"], { notAfter: new Date(Date.now() - hour) });
    const early = issue(clients, ["alice.example"], { notBefore: new Date(Date.now() + hour) });
    // Of the same name as the authority, with another key.
    const forged = issue(authority("clients"), ["alice.example"]);
    for (const as of [ended, early, forged]) expect(await reach(plane, as)).toBe("refused");
    expect(await reach(plane, alice)).toBe(200);
  });

  test("an intermediate is followed to the authority; a client's certificate issues none", async () => {
    const plane = await start(asking(onlyValid));
    const between = intermediate(clients, "between");
    const carol = issue(between, ["carol.example"]);
    expect(await reach(plane, { ...carol, cert: carol.cert + between.cert })).toBe(200);
    expect(await reach(plane, carol)).toBe("refused");
    const leaf = intermediate(clients, "leaf", { isAuthority: false });
    const forged = issue(leaf, ["alice.example"]);
    expect(await reach(plane, { ...forged, cert: forged.cert + leaf.cert })).toBe("refused");
  });

  test("a connection from before its port asked for certificates, or others, is sent back", async () => {
    const plane = await start(secure("a", tls, "a.example", [shown]));
    const demand = (clientValidation: ClientValidation): Promise<void> =>
      plane.apply({ upserts: [port(443, "tls", { clientValidation })], removes: [] });
    /** Envoy may close what it has sent back. */
    const again = async (session: ClientHttp2Session, name: string): Promise<number> =>
      session.closed || session.destroyed ? 421 : over(session, name).catch(() => 421);
    const before = [http2(plane, "a.example"), http2(plane, "b.example")] as const;
    expect(await over(before[0], "a.example")).toBe(200);
    expect(await over(before[1], "b.example")).toBe(200);
    await demand(onlyValid);
    await expect.poll(() => reach(plane)).toBe("refused");
    expect(await again(before[0], "a.example")).toBe(421);
    expect(await again(before[1], "b.example")).toBe(421);
    const proven = http2(plane, "a.example", alice);
    for (const name of ["a.example", "A.EXAMPLE", "a.example."]) expect(await over(proven, name)).toBe(200);
    await demand({ ...onlyValid, subjectAltNames: ["DNS:bob.example"] });
    await expect.poll(() => reach(plane, alice)).toBe("refused");
    expect(await again(proven, "a.example")).toBe(421);
    expect(await reach(plane, bob)).toBe(200);
    await demand({ ...onlyValid, mode: "AllowInsecureFallback" });
    await expect.poll(() => reach(plane)).toBe(200);
    const open = http2(plane, "a.example");
    expect(await over(open, "a.example")).toBe(200);
    await demand(onlyValid);
    await expect.poll(() => reach(plane)).toBe("refused");
    expect(await again(open, "a.example")).toBe(421);
    await plane.apply({ upserts: [tls], removes: [] });
    await expect.poll(() => reach(plane)).toBe(200);
  });

  test("a listener's own demand and its port's take over from each other", async () => {
    const a = secure("a", tls, "a.example", [shown]);
    const strict = asking({ ...onlyValid, subjectAltNames: ["DNS:alice.example"] });
    const validating = port(443, "tls", { clientValidation: onlyValid });
    const plane = await start(strict);
    await plane.apply({ upserts: [validating], removes: [] });
    await expect.poll(() => reach(plane, alice)).toBe(200);
    const own = http2(plane, "a.example", alice);
    expect(await over(own, "a.example")).toBe(200);
    await plane.apply({ upserts: [a], removes: [] });
    await expect.poll(() => reach(plane, bob)).toBe(200);
    const shared = http2(plane, "a.example", bob);
    expect(await over(shared, "a.example")).toBe(200);
    await plane.apply({ upserts: [strict], removes: [] });
    await expect.poll(() => reach(plane, bob)).toBe("refused");
    if (!shared.closed && !shared.destroyed)
      expect(await over(shared, "a.example").catch(() => 421)).toBe(421);
    expect(await reach(plane, alice)).toBe(200);
  });

  test("an intermediate can be the authority, and is no wider than itself", async () => {
    const between = intermediate(clients, "between");
    const carol = issue(between, ["carol.example"]);
    const plane = await start(asking({ ...onlyValid, authorities: [between.cert] }));
    expect(await reach(plane, carol)).toBe(200);
    expect(await reach(plane, { ...carol, cert: carol.cert + between.cert })).toBe(200);
    expect(await reach(plane)).toBe("refused");
    // Of its own issuer, of one of the same name, and of one that is no authority.
    expect(await reach(plane, alice)).toBe("refused");
    expect(await reach(plane, { ...alice, cert: alice.cert + clients.cert })).toBe("refused");
    const ended = issue(between, ["carol.example"], { notAfter: new Date(Date.now() - 3_600_000) });
    expect(await reach(plane, ended)).toBe("refused");
    expect(await reach(plane, issue(intermediate(clients, "between"), ["carol.example"]))).toBe("refused");
    const leaf = intermediate(between, "leaf", { isAuthority: false });
    const forged = issue(leaf, ["carol.example"]);
    expect(await reach(plane, { ...forged, cert: forged.cert + leaf.cert })).toBe("refused");
  });

  test("a huge chain harms nobody else", async () => {
    const plane = await start(asking(onlyValid));
    let last = clients;
    const chain: string[] = [];
    for (let depth = 0; depth < 150; depth++) {
      last = intermediate(last, `between ${depth}`);
      chain.unshift(last.cert);
    }
    const deep = issue(last, ["alice.example"]);
    const neighbour = http2(plane, "b.example");
    expect(await reach(plane, { ...deep, cert: [deep.cert, ...chain].join("") })).toBe("refused");
    expect(await over(neighbour, "b.example")).toBe(200);
    expect(await reach(plane, alice)).toBe(200);
  });
}
