import { once } from "node:events";
import { type ConnectionOptions, connect as connectTls, createServer, type TLSSocket } from "node:tls";
import { expect, test } from "vitest";
import { authority, issue, selfSigned } from "../support/certificates.ts";
import { ask, textOf } from "../support/http-peers.ts";
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
import type { CreateDataPlane } from "../support/plane-under-test.ts";
import { setStage } from "./stage.ts";

const tls = port(443, "tls");
const ca = authority();
const forA = certificate("c-a", issue(ca, ["a.example"]));
const forB = certificate("c-b", issue(ca, ["*.b.example"]));

export function describeTls(create: CreateDataPlane): void {
  const stage = setStage(create);
  const handshake = async (at: number, options: ConnectionOptions): Promise<TLSSocket> => {
    const socket = connectTls({ host: "127.0.0.1", port: at, ca: ca.cert, ...options });
    stage.onRelease(() => socket.destroy());
    socket.on("error", () => {});
    await once(socket, "secureConnect");
    return socket;
  };
  const namesAt = async (at: number, servername: string): Promise<string | undefined> =>
    (await handshake(at, { servername })).getPeerCertificate().subjectaltname;

  test("shows the certificate of the listener for the name, and nobody's for other names", async () => {
    const a = secure("a", tls, "a.example", [forA]);
    const b = secure("b", tls, "*.b.example", [forB]);
    const plane = await stage.start([
      tls,
      a,
      b,
      forA,
      forB,
      host(a, "a.example", [rule({ action: forwardTo("to-a") })]),
      host(b, "*.b.example", [rule({ action: forwardTo("to-b") })]),
      backend("to-a", [await stage.backends.echo("a")]),
      backend("to-b", [await stage.backends.echo("b")]),
    ]);
    const at = plane.at(443);
    expect(await namesAt(at, "A.example")).toBe("DNS:a.example");
    expect(await namesAt(at, "x.b.example")).toBe("DNS:*.b.example");
    await expect(namesAt(at, "c.example")).rejects.toThrow();
    await expect(handshake(at, { servername: "" })).rejects.toThrow();
    const answer = await ask(at, { host: "x.b.example", tls: { ca: ca.cert, servername: "x.b.example" } });
    expect(answer.seen.backend).toBe("b");
    expect(answer.seen.headers).toMatchObject({ "x-forwarded-proto": "https", "x-forwarded-port": "443" });
  });

  test("agrees on the groups of Mozilla's intermediate profile and on the post-quantum hybrid, on no others", async () => {
    const a = secure("a", tls, "a.example", [forA]);
    const plane = await stage.start([tls, a, forA]);
    const agrees = async (ecdhCurve: string): Promise<boolean> =>
      handshake(plane.at(443), { servername: "a.example", ecdhCurve }).then(
        () => true,
        () => false,
      );
    const groups = ["X25519MLKEM768", "X25519", "P-256", "P-384", "P-521", "X448"];
    const agreed = [];
    for (const group of groups) if (await agrees(group)) agreed.push(group);
    expect(agreed).toEqual(["X25519MLKEM768", "X25519", "P-256", "P-384"]);
  });

  test("lets no client of TLS 1.2 renegotiate (RFC 9113, 9.2.1)", async () => {
    const a = secure("a", tls, "a.example", [forA]);
    const plane = await stage.start([tls, a, forA]);
    for (const protocol of ["http/1.1", "h2"]) {
      const socket = await handshake(plane.at(443), {
        servername: "a.example",
        maxVersion: "TLSv1.2",
        ALPNProtocols: [protocol],
      });
      const outcome = await new Promise<Error | null>((resolve) => {
        socket.renegotiate({}, resolve);
        socket.once("error", resolve);
        socket.once("close", () => resolve(new Error("closed")));
      });
      expect(outcome).toBeInstanceOf(Error);
    }
  });

  test("a connection serves the names of its listener only: 421 for another's, 404 for nobody's", async () => {
    const a = secure("a", tls, "a.example", [forA]);
    const b = secure("b", tls, "*.b.example", [forB]);
    const plane = await stage.start([
      tls,
      a,
      b,
      forA,
      forB,
      host(a, "a.example", [rule({ action: forwardTo("to-a") })]),
      host(b, "*.b.example", [rule({ action: forwardTo("to-b") })]),
      backend("to-a", [await stage.backends.echo("a")]),
      backend("to-b", [await stage.backends.echo("b")]),
    ]);
    const over = { ca: ca.cert, servername: "a.example" };
    expect((await ask(plane.at(443), { host: "a.example", tls: over })).status).toBe(200);
    expect((await ask(plane.at(443), { host: "x.b.example", tls: over })).status).toBe(421);
    expect((await ask(plane.at(443), { host: "nobody.example", tls: over })).status).toBe(404);
  });

  test("a broken certificate is its listener's trouble only, and one good among several is enough", async () => {
    const other = selfSigned(["other.example"]);
    const broken = certificate("c-broken", { cert: forA.chain, key: other.key });
    const a = secure("a", tls, "a.example", [broken]);
    const b = secure("b", tls, "*.b.example", [broken, forB]);
    const plane = await stage.start([tls, a, b, broken, forB]);
    expect(plane.report("c-broken")).toMatchObject({ state: "rejected", reason: "InvalidCertificate" });
    expect(plane.report("c-b")).toEqual({ id: "c-b", state: "programmed" });
    expect(plane.report("a")).toMatchObject({ state: "rejected", reason: "InvalidCertificate" });
    expect(plane.report("b")).toEqual({ id: "b", state: "programmed" });
    expect(await namesAt(plane.at(443), "x.b.example")).toBe("DNS:*.b.example");
    await expect(namesAt(plane.at(443), "a.example")).rejects.toThrow();
    await plane.apply({ upserts: [{ ...forA, id: "c-broken" }], removes: [] });
    await plane.until(() => plane.report("a")?.state === "programmed");
    expect(await namesAt(plane.at(443), "a.example")).toBe("DNS:a.example");
  });

  test("shows the certificate that carries the name, or else the first of the listener", async () => {
    const own = (name: string): ReturnType<typeof certificate> =>
      certificate(`c-${name}`, issue(ca, [`${name}.many.example`]), [`${name}.many.example`]);
    const [one, two] = [own("one"), own("two")] as const;
    const many = secure("many", tls, "*.many.example", [one, two]);
    const plane = await stage.start([tls, many, one, two]);
    const shown = async (servername: string): Promise<string | undefined> =>
      (await handshake(plane.at(443), { servername, rejectUnauthorized: false })).getPeerCertificate()
        .subjectaltname;
    expect(await shown("one.many.example")).toBe("DNS:one.many.example");
    expect(await shown("two.many.example")).toBe("DNS:two.many.example");
    expect(await shown("three.many.example")).toBe("DNS:one.many.example");
  });

  test("a changed certificate meets the next handshake and no open connection", async () => {
    const a = secure("a", tls, "a.example", [forA]);
    const plane = await stage.start([
      tls,
      a,
      forA,
      host(a, "a.example", [rule({ action: forwardTo("to-a") })]),
      backend("to-a", [await stage.backends.echo("a")]),
    ]);
    const open = await handshake(plane.at(443), { servername: "a.example" });
    const renewed = certificate("c-a", issue(ca, ["a.example", "www.a.example"]));
    await plane.apply({ upserts: [renewed], removes: [] });
    expect(await namesAt(plane.at(443), "a.example")).toBe("DNS:a.example, DNS:www.a.example");
    open.write("GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n");
    expect(await textOf(open)).toMatch(/^HTTP\/1.1 200 /);
  });

  test("asks clients for certificates as the port says", async () => {
    const clients = authority("clients");
    const alice = issue(clients, ["alice.example"]);
    const mallory = selfSigned(["mallory.example"]);
    // Of an authority that only bears the same name: its signature is tried, and does not fit.
    const impostor = issue(authority("clients"), ["alice.example"]);
    const a = secure("a", tls, "a.example", [forA]);
    const items = [
      a,
      forA,
      host(a, "a.example", [rule({ action: forwardTo("to-a") })]),
      backend("to-a", [await stage.backends.echo("a")]),
    ];
    const plane = await stage.start([
      { ...tls, clientValidation: { mode: "AllowValidOnly", authorities: [clients.cert] } },
      ...items,
    ]);
    const askWith = (
      client: { cert: string; key: string } | undefined,
    ): Promise<{ readonly status: number }> =>
      ask(plane.at(443), { host: "a.example", tls: { ca: ca.cert, servername: "a.example", ...client } });
    expect((await askWith(alice)).status).toBe(200);
    await expect(askWith(mallory)).rejects.toThrow();
    await expect(askWith(impostor)).rejects.toThrow();
    await expect(askWith(undefined)).rejects.toThrow();

    await plane.apply({
      upserts: [{ ...tls, clientValidation: { mode: "AllowInsecureFallback", authorities: [clients.cert] } }],
      removes: [],
    });
    expect((await askWith(mallory)).status).toBe(200);
    expect((await askWith(impostor)).status).toBe(200);
    expect((await askWith(undefined)).status).toBe(200);

    await plane.apply({
      upserts: [{ ...tls, clientValidation: { mode: "AllowValidOnly", authorities: [] } }],
      removes: [],
    });
    await expect(askWith(alice)).rejects.toThrow();
  });

  test("passes TLS through, and terminates it for streams, beside HTTPS on the same port", async () => {
    const own = issue(ca, ["own.example"]);
    const inside = await stage.backends.listen(
      createServer({ cert: own.cert, key: own.key }, (socket) => socket.end("from inside")),
    );
    const plain = await stage.sockets.serve((socket) => {
      socket.write("in clear: ");
      socket.pipe(socket);
    });
    const through = listener("through", tls, "own.example", {
      protocol: "TLS",
      tls: { mode: "Passthrough", certificates: [] },
    });
    const ends = listener("ends", tls, "*.b.example", {
      protocol: "TLS",
      tls: { mode: "Terminate", certificates: [forB.id] },
    });
    const a = secure("a", tls, "a.example", [forA]);
    const plane = await stage.start([
      tls,
      through,
      ends,
      a,
      forA,
      forB,
      host(a, "a.example", [rule({ action: forwardTo("to-a") })]),
      host(through, "own.example", [rule({ action: forwardTo("inside"), kind: "TLSRoute" })]),
      host(ends, "*.b.example", [rule({ action: forwardTo("plain"), kind: "TLSRoute" })]),
      backend("inside", [inside], { protocol: "tcp" }),
      backend("plain", [plain], { protocol: "tcp" }),
      backend("to-a", [await stage.backends.echo("a")]),
    ]);
    const at = plane.at(443);
    expect(await textOf(await handshake(at, { servername: "own.example" }))).toBe("from inside");
    const ended = await handshake(at, { servername: "x.b.example" });
    ended.end("ping");
    expect(await textOf(ended)).toBe("in clear: ping");
    const answer = await ask(at, { host: "a.example", tls: { ca: ca.cert, servername: "a.example" } });
    expect(answer.status).toBe(200);
    expect(plane.report("through")).toEqual({ id: "through", state: "programmed" });
  });

  test("a port of TLS listeners alone ends connections for other names without a word", async () => {
    const ends = listener("ends", tls, "*.b.example", {
      protocol: "TLS",
      tls: { mode: "Terminate", certificates: [forB.id] },
    });
    const plain = await stage.sockets.serve((socket) => socket.end("in clear"));
    const plane = await stage.start([
      tls,
      ends,
      forB,
      host(ends, "*.b.example", [rule({ action: forwardTo("plain"), kind: "TLSRoute" })]),
      backend("plain", [plain], { protocol: "tcp" }),
    ]);
    const at = plane.at(443);
    await expect(handshake(at, { servername: "c.example" })).rejects.toMatchObject({ code: "ECONNRESET" });
    await plane.apply({ upserts: [secure("a", tls, "a.example", [forA]), forA], removes: [] });
    expect(await namesAt(at, "a.example")).toBe("DNS:a.example");
    expect(await namesAt(at, "x.b.example")).toBe("DNS:*.b.example");
  });
}
