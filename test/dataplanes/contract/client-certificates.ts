import { once } from "node:events";
import { type ClientHttp2Session, connect as connectHttp2, type IncomingHttpHeaders } from "node:http2";
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from "node:tls";
import { expect, test } from "vitest";
import type { ClientValidation } from "../../../src/plan/client-validation.ts";
import type { ListenerItem } from "../../../src/plan/plan.ts";
import { authority, issue, selfSigned, type TestCertificate } from "../support/certificates.ts";
import { type Answer, ask, textOf } from "../support/http-peers.ts";
import {
  backend,
  certificate,
  forwardTo,
  host,
  listener,
  port,
  rule,
  secure,
} from "../support/plan-builder.ts";
import type { CreateDataPlane, PlaneUnderTest } from "../support/plane-under-test.ts";
import { setStage } from "./stage.ts";

const tls = port(443, "tls");
const ca = authority();
const clients = authority("clients");
const others = authority("other clients");
const alice = issue(clients, ["alice.example", "spiffe://example/alice"]);
const bob = issue(clients, ["bob.example"]);
const mallory = issue(others, ["alice.example"]);
const names = ["a.example", "b.example", "c.example", "*.a.example", "*.w.example"];
const shown = certificate("shown", issue(ca, names), names);
const onlyValid: ClientValidation = { mode: "AllowValidOnly", authorities: [clients.cert] };

function asking(item: ListenerItem, clientValidation: ClientValidation): ListenerItem {
  const { mode = "Terminate", certificates = [] } = item.tls ?? {};
  return { ...item, tls: { mode, certificates, clientValidation } };
}

/** Client certificates that one listener asks for, on a port that others share. */
export function describeClientCertificates(create: CreateDataPlane): void {
  const stage = setStage(create);

  async function start(listeners: readonly ListenerItem[], at = tls): Promise<PlaneUnderTest> {
    return stage.start([
      at,
      shown,
      ...listeners,
      ...listeners.map((each) => host(each, each.hostname, [rule({ action: forwardTo(`to-${each.id}`) })])),
      ...(await Promise.all(
        listeners.map(async ({ id }) => backend(`to-${id}`, [await stage.backends.echo(id)])),
      )),
    ]);
  }

  /** The status, or that there was no handshake. */
  async function reach(
    plane: PlaneUnderTest,
    {
      host: name,
      sni = name,
      as,
    }: { readonly host: string; readonly sni?: string; readonly as?: TestCertificate },
  ): Promise<number | "refused"> {
    return askAs(plane, name, { sni, as }).then(
      ({ status }) => status,
      () => "refused",
    );
  }

  function askAs(
    plane: PlaneUnderTest,
    name: string,
    {
      sni = name,
      as,
      headers = {},
    }: {
      readonly sni?: string;
      readonly as?: TestCertificate | undefined;
      readonly headers?: Record<string, string>;
    },
  ): Promise<Answer> {
    // Clients that lie about the name that they want do not look at the name that they get.
    const over = { ca: ca.cert, servername: sni, checkServerIdentity: () => undefined, ...as };
    return ask(plane.at(443), { host: name, headers, tls: over });
  }

  async function handshake(plane: PlaneUnderTest, options: ConnectionOptions): Promise<TLSSocket> {
    const socket = connectTls({ host: "127.0.0.1", port: plane.at(443), ca: ca.cert, ...options });
    stage.onRelease(() => socket.destroy());
    // Node leaves a socket open whose peer refuses it after the client's part of the handshake.
    socket.on("error", () => socket.destroy());
    await once(socket, "secureConnect");
    return socket;
  }

  function http2(plane: PlaneUnderTest, options: ConnectionOptions): ClientHttp2Session {
    const session = connectHttp2(`https://127.0.0.1:${plane.at(443)}`, { ca: ca.cert, ...options });
    stage.onRelease(() => session.destroy());
    return session.on("error", () => {});
  }

  async function over(session: ClientHttp2Session, name: string): Promise<number | undefined> {
    const stream = session.request({ ":path": "/", ":authority": name });
    const [head] = (await once(stream, "response")) as [IncomingHttpHeaders];
    stream.resume();
    return Number(head[":status"]);
  }

  test("one listener asks for certificates, and others on the port do not notice", async () => {
    const plane = await start([
      asking(secure("a", tls, "a.example", [shown]), onlyValid),
      secure("b", tls, "b.example", [shown]),
    ]);
    expect(await reach(plane, { host: "a.example", as: alice })).toBe(200);
    expect(await reach(plane, { host: "a.example" })).toBe("refused");
    expect(await reach(plane, { host: "a.example", as: mallory })).toBe("refused");
    expect(await reach(plane, { host: "b.example" })).toBe(200);
    expect(await reach(plane, { host: "b.example", as: mallory })).toBe(200);
    expect(plane.report("a")).toEqual({ id: "a", state: "programmed" });
  });

  test("no connection for another name reaches a listener with certificates of its own", async () => {
    const plane = await start([
      asking(secure("a", tls, "a.example", [shown]), onlyValid),
      secure("wild", tls, "*.example", [shown]),
      secure("all", tls, "", [shown]),
    ]);
    for (const name of ["a.example", "A.EXAMPLE", "a.example.", "a.example:443"]) {
      for (const sni of ["b.example", "B.example", "elsewhere.test", ""])
        expect([name, sni, await reach(plane, { host: name, sni })]).toEqual([name, sni, 421]);
    }
    for (const sni of ["a.example", "A.EXAMPLE", "A.Example", "a.example."]) {
      expect([sni, await reach(plane, { host: "a.example", sni })]).not.toEqual([sni, 200]);
      expect([sni, await reach(plane, { host: "a.example", sni, as: mallory })]).not.toEqual([sni, 200]);
    }
    expect(await reach(plane, { host: "A.EXAMPLE", sni: "A.EXAMPLE", as: alice })).toBe(200);
    expect(await reach(plane, { host: "b.example", sni: "a.example", as: alice })).toBe(421);
    const session = http2(plane, { servername: "b.example" });
    expect(await over(session, "b.example")).toBe(200);
    for (const name of ["a.example", "A.EXAMPLE", "a.example."]) expect(await over(session, name)).toBe(421);
    const proven = http2(plane, { servername: "a.example", ...alice });
    expect(await over(proven, "a.example")).toBe(200);
    expect(await over(proven, "b.example")).toBe(421);
  });

  test("a wildcard asks for certificates of its own names alone", async () => {
    const plane = await start([
      asking(secure("wild", tls, "*.a.example", [shown]), onlyValid),
      secure("inner", tls, "open.a.example", [shown]),
      asking(secure("other", tls, "closed.a.example", [shown]), {
        ...onlyValid,
        authorities: [others.cert],
      }),
      secure("b", tls, "b.example", [shown]),
    ]);
    expect(await reach(plane, { host: "x.a.example" })).toBe("refused");
    expect(await reach(plane, { host: "x.a.example", as: alice })).toBe(200);
    expect(await reach(plane, { host: "open.a.example" })).toBe(200);
    expect(await reach(plane, { host: "closed.a.example", as: alice })).toBe("refused");
    expect(await reach(plane, { host: "closed.a.example", as: mallory })).toBe(200);
    expect(await reach(plane, { host: "x.a.example", sni: "closed.a.example", as: mallory })).toBe(421);
    expect(await reach(plane, { host: "x.a.example", sni: "open.a.example" })).toBe(421);
    expect(await reach(plane, { host: "closed.a.example", sni: "x.a.example", as: alice })).toBe(421);
    await plane.apply({ upserts: [secure("late", tls, "late.a.example", [shown])], removes: [] });
    await plane.until(() => plane.report("late")?.state === "programmed");
    expect(await reach(plane, { host: "late.a.example" })).toBe(404);
  });

  test("a session of one listener resumes at no other", async () => {
    const a = secure("a", tls, "a.example", [shown]);
    const plane = await start([asking(a, onlyValid), secure("b", tls, "b.example", [shown])]);
    const resume = async (maxVersion: "TLSv1.2" | "TLSv1.3"): Promise<number | "refused"> => {
      const first = connectTls({
        host: "127.0.0.1",
        port: plane.at(443),
        ca: ca.cert,
        servername: "b.example",
        maxVersion,
      });
      stage.onRelease(() => first.destroy());
      const session = new Promise<Buffer | undefined>((resolve) => {
        first.once("session", resolve).once("close", () => resolve(undefined));
      });
      first.write("GET / HTTP/1.1\r\nHost: b.example\r\nConnection: close\r\n\r\n");
      first.resume();
      const ticket = await session;
      if (ticket === undefined) return "refused";
      const second = connectTls({
        host: "127.0.0.1",
        port: plane.at(443),
        ca: ca.cert,
        servername: "a.example",
        session: ticket,
        maxVersion,
      });
      stage.onRelease(() => second.destroy());
      second.on("error", () => {});
      second.write("GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n");
      const text = await textOf(second).catch(() => "");
      return text === "" ? "refused" : Number(/^HTTP\/1.1 (\d+)/.exec(text)?.[1]);
    };
    expect(await resume("TLSv1.2")).toBe("refused");
    expect(await resume("TLSv1.3")).toBe("refused");
  });

  test("a connection from before the demand, or from under another, is sent back for a new one", async () => {
    const a = secure("a", tls, "a.example", [shown]);
    const plane = await start([a, secure("b", tls, "b.example", [shown])]);
    const before = http2(plane, { servername: "a.example" });
    const neighbour = http2(plane, { servername: "b.example" });
    expect([await over(before, "a.example"), await over(neighbour, "b.example")]).toEqual([200, 200]);
    await plane.apply({ upserts: [asking(a, onlyValid)], removes: [] });
    await expect.poll(() => reach(plane, { host: "a.example" })).toBe("refused");
    await expect.poll(() => over(before, "a.example")).toBe(421);
    const proven = http2(plane, { servername: "a.example", ...alice });
    expect(await over(proven, "a.example")).toBe(200);
    await plane.apply({
      upserts: [asking(a, { ...onlyValid, authorities: [others.cert] })],
      removes: [],
    });
    await expect.poll(() => reach(plane, { host: "a.example", as: alice })).toBe("refused");
    if (!proven.closed && !proven.destroyed)
      expect(await over(proven, "a.example").catch(() => 421)).toBe(421);
    expect(await reach(plane, { host: "a.example", as: mallory })).toBe(200);
    await plane.apply({ upserts: [a], removes: [] });
    await expect.poll(() => reach(plane, { host: "a.example" })).toBe(200);
    expect([await over(neighbour, "b.example"), neighbour.closed]).toEqual([200, false]);
  });

  test("without an authority nobody is let in, and with a fallback everybody is", async () => {
    const a = secure("a", tls, "a.example", [shown]);
    const plane = await start([asking(a, { mode: "AllowValidOnly", authorities: [] })]);
    expect(await reach(plane, { host: "a.example", as: alice })).toBe("refused");
    expect(await reach(plane, { host: "a.example" })).toBe("refused");
    await plane.apply({
      upserts: [asking(a, { mode: "AllowInsecureFallback", authorities: [clients.cert] })],
      removes: [],
    });
    await expect.poll(() => reach(plane, { host: "a.example" })).toBe(200);
    expect(await reach(plane, { host: "a.example", as: mallory })).toBe(200);
    expect(await reach(plane, { host: "a.example", as: selfSigned(["me.example"]) })).toBe(200);
  });

  test("a listener may ask for more than its port, whose other listeners ask as before", async () => {
    const validating = port(443, "tls", { clientValidation: onlyValid });
    const plane = await start(
      [
        asking(secure("a", tls, "a.example", [shown]), { ...onlyValid, authorities: [others.cert] }),
        secure("b", tls, "b.example", [shown]),
      ],
      validating,
    );
    expect(await reach(plane, { host: "a.example", as: mallory })).toBe(200);
    expect(await reach(plane, { host: "a.example", as: alice })).toBe("refused");
    expect(await reach(plane, { host: "b.example", as: alice })).toBe(200);
    expect(await reach(plane, { host: "b.example", as: mallory })).toBe("refused");
  });

  test("a certificate must carry one of the names that are asked for", async () => {
    const a = secure("a", tls, "a.example", [shown]);
    const named = (...subjectAltNames: string[]): ListenerItem =>
      asking(a, { ...onlyValid, subjectAltNames });
    const plane = await start([named("DNS:alice.example", "DNS:carol.example")]);
    expect(await reach(plane, { host: "a.example", as: alice })).toBe(200);
    expect(await reach(plane, { host: "a.example", as: bob })).toBe("refused");
    expect(await reach(plane, { host: "a.example", as: mallory })).toBe("refused");
    await plane.apply({ upserts: [named("URI:spiffe://example/bob", "DNS:bob.example")], removes: [] });
    await expect.poll(() => reach(plane, { host: "a.example", as: bob })).toBe(200);
    expect(await reach(plane, { host: "a.example", as: alice })).toBe("refused");
    await plane.apply({ upserts: [named("URI:spiffe://example/alice")], removes: [] });
    await expect.poll(() => reach(plane, { host: "a.example", as: alice })).toBe(200);
    await plane.apply({ upserts: [named()], removes: [] });
    await expect.poll(() => reach(plane, { host: "a.example", as: alice })).toBe("refused");
    expect(await reach(plane, { host: "a.example", as: bob })).toBe("refused");
  });

  test("backends are told who the client is, and clients cannot say it themselves", async () => {
    const forged = { "x-forwarded-client-cert": "Hash=0;URI=spiffe://example/root" };
    const plane = await start([
      asking(secure("a", tls, "a.example", [shown]), { ...onlyValid, forward: "Names" }),
      asking(secure("c", tls, "c.example", [shown]), { ...onlyValid, forward: "Certificate" }),
      secure("b", tls, "b.example", [shown]),
    ]);
    const told = async (name: string, as?: TestCertificate): Promise<string | undefined> => {
      const { seen } = await askAs(plane, name, { as, headers: forged });
      return seen.headers["x-forwarded-client-cert"];
    };
    expect(await told("a.example", alice)).toMatch(
      /^Hash=[0-9a-f]{64};URI=spiffe:\/\/example\/alice;DNS=alice\.example$/,
    );
    expect(await told("a.example", bob)).toMatch(/^Hash=[0-9a-f]{64}(;URI=)?;DNS=bob\.example$/);
    const whole = await told("c.example", alice);
    const [, pem = ""] =
      /^Hash=[0-9a-f]{64};Cert="([^"]*)";URI=[^;]*;DNS=alice\.example$/.exec(whole ?? "") ?? [];
    expect(decodeURIComponent(pem).trim()).toBe(alice.cert.trim());
    expect(await told("b.example", alice)).toBeUndefined();
  });

  test("terminated TLS asks for certificates, too", async () => {
    const plain = await stage.sockets.serve((socket) => socket.end("in clear"));
    const ends = listener("ends", tls, "*.w.example", {
      protocol: "TLS",
      tls: { mode: "Terminate", certificates: [shown.id], clientValidation: onlyValid },
    });
    const open = listener("open", tls, "open.w.example", {
      protocol: "TLS",
      tls: { mode: "Terminate", certificates: [shown.id] },
    });
    const plane = await stage.start([
      tls,
      ends,
      open,
      shown,
      host(ends, "*.w.example", [rule({ action: forwardTo("plain"), kind: "TLSRoute" })]),
      host(open, "open.w.example", [rule({ action: forwardTo("plain"), kind: "TLSRoute" })]),
      backend("plain", [plain], { protocol: "tcp" }),
    ]);
    const said = async (servername: string, as?: TestCertificate): Promise<string> =>
      handshake(plane, { servername, ...as })
        .then(textOf)
        .catch(() => "refused")
        .then((text) => text || "refused");
    expect(await said("x.w.example", alice)).toBe("in clear");
    expect(await said("x.w.example")).toBe("refused");
    expect(await said("x.w.example", mallory)).toBe("refused");
    expect(await said("open.w.example")).toBe("in clear");
  });
}
