/**
 * The stream between the controller and Envoy: what is sent, in which order, how often, and what
 * happens when it breaks or is refused.
 */

import { once } from "node:events";
import { Agent, request } from "node:http";
import { connect as connectTls } from "node:tls";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { EnvoyDataPlane, EnvoyOptions } from "../../../src/dataplanes/envoy/envoy-data-plane.ts";
import type { PlanItem } from "../../../src/plan/plan.ts";
import { authority, issue } from "../support/certificates.ts";
import { createEnvoy } from "../support/envoy-plane.ts";
import { answerOf, ask, Backends } from "../support/http-peers.ts";
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
import { PlaneUnderTest } from "../support/plane-under-test.ts";
import { Sockets } from "../support/sockets.ts";

const ca = authority();
const http = port(80);
const https = port(443, "tls");

describe("an Envoy and its controller", () => {
  const open: PlaneUnderTest[] = [];
  let backends: Backends;
  let sockets: Sockets;

  beforeEach(() => {
    backends = new Backends();
    sockets = new Sockets();
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map((plane) => plane.close()));
    await sockets.release();
    await backends.release();
  });
  const start = async (
    items: readonly PlanItem[],
    options: Omit<EnvoyOptions, "bind"> = {},
  ): Promise<{ readonly plane: PlaneUnderTest; readonly envoy: EnvoyDataPlane }> => {
    let envoy: EnvoyDataPlane | undefined;
    const plane = await PlaneUnderTest.start((given) => {
      envoy = createEnvoy(given, options);
      return envoy;
    }, items);
    open.push(plane);
    if (envoy === undefined) throw new Error("no Envoy was made");
    return { plane, envoy };
  };
  const tenant = (name: string, to: string): readonly PlanItem[] => {
    const own = listener(name, http, `${name}.example`);
    return [own, host(own, `${name}.example`, [rule({ action: forwardTo(to) })])];
  };
  const sentBy = (envoy: EnvoyDataPlane): number =>
    envoy.replicas.reduce((sum, { stream }) => sum + stream.sent, 0);

  test("only the rejected rule is left out: its hostname reports it, others are served", async () => {
    const { plane } = await start([
      http,
      ...tenant("good", "b"),
      ...tenant("bad", "b"),
      backend("b", [await backends.echo("b")]),
    ]);
    const bad = listener("bad", http, "bad.example");
    const good = listener("good", http, "good.example");
    // A path that no request line can carry, which the engine never lets through and Envoy refuses.
    const refused = host(bad, "bad.example", [rule({ path: "/a#b", action: forwardTo("b") })]);
    const changed = host(good, "good.example", [rule({ path: "/new", action: forwardTo("b") })]);
    await plane.apply({ upserts: [refused, changed, bad, good], removes: [] });
    await plane.until(() => plane.report(refused.id) !== undefined);
    expect(plane.report(refused.id)).toMatchObject({ state: "rejected", reason: "Refused" });
    for (const id of ["good", "bad"]) expect(plane.report(id)).toEqual({ id, state: "programmed" });
    expect((await ask(plane.at(80), { host: "bad.example" })).status).toBe(404);
    expect((await ask(plane.at(80), { host: "good.example", path: "/new" })).status).toBe(200);
    expect((await ask(plane.at(80), { host: "good.example" })).status).toBe(404);

    const mended = host(bad, "bad.example", [rule({ path: "/ab", action: forwardTo("b") })]);
    await plane.apply({ upserts: [mended], removes: [] });
    await plane.until(() => plane.report(refused.id)?.state === "programmed");
    expect((await ask(plane.at(80), { host: "bad.example", path: "/ab" })).status).toBe(200);
  });

  test("a rejected rule in the first configuration of an Envoy affects no other", async () => {
    const bad = listener("bad", http, "bad.example");
    const refused = host(bad, "bad.example", [rule({ path: "/a#b", action: forwardTo("b") })]);
    const { plane } = await start([
      http,
      ...tenant("one", "b"),
      bad,
      refused,
      ...tenant("two", "b"),
      backend("b", [await backends.echo("b")]),
    ]);
    await plane.until(() => plane.report(refused.id)?.state === "rejected");
    for (const name of ["one", "two"]) {
      expect((await ask(plane.at(80), { host: `${name}.example` })).status).toBe(200);
    }
  });

  test("an Envoy that reconnects is sent only what has changed", async () => {
    const own = certificate("c", issue(ca, ["t.example"]));
    const t = secure("t", https, "t.example", [own]);
    const { plane, envoy } = await start([
      http,
      https,
      ...tenant("one", "b"),
      t,
      own,
      host(t, "t.example", [rule({ action: forwardTo("b") })]),
      backend("b", [await backends.echo("b")]),
    ]);
    const over = { host: "t.example", tls: { ca: ca.cert, servername: "t.example" } };
    expect((await ask(plane.at(443), over)).status).toBe(200);
    const before = envoy.replicas[0]?.stream;
    envoy.disconnect();
    await expect.poll(() => envoy.replicas[0]?.stream !== before && envoy.settled).toBe(true);
    expect(sentBy(envoy)).toBe(0);
    expect((await ask(plane.at(443), over)).status).toBe(200);
    await plane.apply({ upserts: tenant("two", "b"), removes: [] });
    expect(sentBy(envoy)).toBe(1);
    expect((await ask(plane.at(80), { host: "two.example" })).status).toBe(200);
  });

  test("a new tenant costs its scope, its cluster and endpoints, and no resource of others", async () => {
    const many = Array.from({ length: 50 }, (_, index) => tenant(`t${index}`, "b")).flat();
    const { plane, envoy } = await start([http, ...many, backend("b", [await backends.echo("b")])]);
    const before = sentBy(envoy);
    await plane.apply({
      upserts: [...tenant("new", "own"), backend("own", [await backends.echo("own")])],
      removes: [],
    });
    expect(sentBy(envoy) - before).toBe(3);
    expect((await ask(plane.at(80), { host: "new.example" })).seen.backend).toBe("own");
  });

  test("a burst of changes is sent as its final state", async () => {
    const { plane, envoy } = await start([
      http,
      ...tenant("t", "b"),
      backend("b", [await backends.echo("b")]),
    ]);
    const t = listener("t", http, "t.example");
    const before = sentBy(envoy);
    for (let round = 0; round < 1000; round++) {
      envoy.apply({
        upserts: [host(t, "t.example", [rule({ path: `/r${round}`, action: forwardTo("b") })])],
        removes: [],
      });
    }
    await plane.apply({ upserts: [], removes: [] });
    expect(sentBy(envoy) - before).toBe(1);
    expect((await ask(plane.at(80), { host: "t.example", path: "/r999" })).status).toBe(200);
    expect((await ask(plane.at(80), { host: "t.example", path: "/r998" })).status).toBe(404);
  });

  test("no request meets a rule before its backend: changes under load lose nothing", async () => {
    const ports = await Promise.all([0, 1, 2, 3].map((index) => backends.echo(`b${index}`)));
    const { plane } = await start([http, ...tenant("t", "b-0"), backend("b-0", [ports[0] as number])], {
      lingerMs: 50,
    });
    const t = listener("t", http, "t.example");
    const agent = new Agent({ keepAlive: true, maxSockets: 4 });
    const statuses = new Map<number, number>();
    let running = true;
    const clients = Array.from({ length: 4 }, async () => {
      while (running) {
        const sent = request({
          host: "127.0.0.1",
          port: plane.at(80),
          headers: { host: "t.example" },
          agent,
        });
        sent.end();
        const [response] = await once(sent, "response");
        const { status } = await answerOf(response);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }
    });
    for (let round = 1; round <= 25; round++) {
      const id = `b-${round}`;
      await plane.apply({
        upserts: [
          backend(id, [ports[round % 4] as number]),
          host(t, "t.example", [rule({ action: forwardTo(id) })]),
          ...tenant(`other${round}`, id),
        ],
        removes: [`b-${round - 1}`, `other${round - 1}`, `host-other${round - 1}-other${round - 1}.example`],
      });
      expect((await ask(plane.at(80), { host: `other${round}.example` })).status).toBe(200);
    }
    running = false;
    await Promise.all(clients);
    agent.destroy();
    expect([...statuses.keys()]).toEqual([200]);
    expect(statuses.get(200)).toBeGreaterThan(25);
  });

  test("a stream that breaks after any message ends in the right state", async () => {
    const own = certificate("c", issue(ca, ["t.example"]));
    const t = secure("t", https, "t.example", [own]);
    const items = [
      http,
      https,
      ...tenant("one", "b"),
      t,
      own,
      host(t, "t.example", [rule({ action: forwardTo("b") })]),
      backend("b", [await backends.echo("b")]),
    ];
    for (let cut = 1; cut <= 8; cut++) {
      let envoy: EnvoyDataPlane | undefined;
      const starting = PlaneUnderTest.start((given) => {
        envoy = createEnvoy(given);
        return envoy;
      }, items);
      let cutDone = false;
      while (!cutDone) {
        await new Promise((resolve) => setImmediate(resolve));
        if (envoy === undefined || !envoy.replicas.some(({ stream }) => stream.sent >= cut)) {
          if (envoy?.settled === true) break;
          continue;
        }
        envoy.disconnect();
        cutDone = true;
      }
      const plane = await starting;
      open.push(plane);
      expect((await ask(plane.at(80), { host: "one.example" })).status).toBe(200);
      const over = { host: "t.example", tls: { ca: ca.cert, servername: "t.example" } };
      expect((await ask(plane.at(443), over)).status).toBe(200);
      await plane.apply({ upserts: tenant("two", "b"), removes: ["one", "host-one-one.example"] });
      expect((await ask(plane.at(80), { host: "two.example" })).status).toBe(200);
      expect((await ask(plane.at(80), { host: "one.example" })).status).toBe(404);
      await plane.close();
    }
  });

  test("an Envoy that dies is started again and serves what it served", async () => {
    const { plane, envoy } = await start([
      http,
      ...tenant("t", "b"),
      backend("b", [await backends.echo("b")]),
    ]);
    const before = envoy.process(gateway)?.pid;
    if (before === undefined) throw new Error("no process");
    process.kill(before, "SIGKILL");
    await plane.until(() => plane.report("t")?.state === "rejected");
    await expect.poll(() => envoy.process(gateway)?.pid ?? before, { timeout: 10_000 }).not.toBe(before);
    const served = (): Promise<number> =>
      ask(plane.at(80), { host: "t.example" }).then(
        ({ status }) => status,
        () => 0,
      );
    await expect.poll(served, { timeout: 10_000 }).toBe(200);
    await plane.until(() => plane.report("t")?.state === "programmed");
  });

  test("on-demand names are removed without an effect on open connections", async () => {
    const own = certificate("c", issue(ca, ["*.w.example"]));
    const wild = secure("wild", https, "*.w.example", [own]);
    const { plane, envoy } = await start(
      [
        https,
        wild,
        own,
        host(wild, "*.w.example", [rule({ action: forwardTo("b") })]),
        backend("b", [await backends.echo("b")]),
      ],
      { limits: { onDemandSecrets: 4 } },
    );
    const over = (servername: string) => ({ host: servername, tls: { ca: ca.cert, servername } });
    const kept = connectTls({
      port: plane.at(443),
      host: "127.0.0.1",
      servername: "first.w.example",
      ca: ca.cert,
    });
    sockets.keep(kept);
    await once(kept, "secureConnect");
    for (let index = 0; index < 20; index++) {
      expect((await ask(plane.at(443), over(`n${index}.w.example`))).status).toBe(200);
    }
    for (let index = 0; index < 20; index++) {
      await expect(ask(plane.at(443), over(`n${index}.nobody.example`))).rejects.toThrow();
    }
    const secrets = async (): Promise<number> => {
      const dump = JSON.parse(
        (await envoy.process(gateway)?.admin("GET", "/config_dump?resource=dynamic_active_secrets")) ?? "{}",
      ) as { readonly configs?: readonly unknown[] };
      return dump.configs?.length ?? 0;
    };
    await expect.poll(secrets).toBeLessThanOrEqual(4);
    expect((await ask(plane.at(443), over("n0.w.example"))).status).toBe(200);
    kept.write("GET / HTTP/1.1\r\nHost: first.w.example\r\n\r\n");
    const [answer] = (await once(kept, "data")) as [Buffer];
    expect(String(answer)).toMatch(/^HTTP\/1\.1 200 /);
  });

  test("Gateways see nothing of each other", async () => {
    const mine = tenant("mine", "b");
    const otherPort = { ...port(81), gateway: "other/edge" };
    const theirs = listener("theirs", otherPort, "mine.example", { gateway: "other/edge" });
    const { plane, envoy } = await start([
      http,
      ...mine,
      backend("b", [await backends.echo("b")]),
      otherPort,
      theirs,
    ]);
    expect(envoy.replicas.map(({ gateway: each }) => each).sort()).toEqual(["infra/edge", "other/edge"]);
    expect((await ask(plane.at(80), { host: "mine.example" })).status).toBe(200);
    expect((await ask(plane.at(81), { host: "mine.example" })).status).toBe(404);
    const dump = await envoy.process("other/edge")?.admin("GET", "/config_dump?include_eds");
    expect(dump).toContain("81/mine.example");
    expect(dump).not.toContain("80/mine.example");
  });

  test("closing lets requests finish within the time limit, and no longer", async () => {
    let release = (): void => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const at = await backends.http(async (_request, response) => {
      response.write("begun, ");
      await held;
      response.end("done");
    });
    const items = [http, ...tenant("t", "b"), backend("b", [at])];
    const begin = async (plane: PlaneUnderTest) => {
      const sent = request({
        host: "127.0.0.1",
        port: plane.at(80),
        headers: { host: "t.example" },
        agent: false,
      });
      sent.end();
      const [response] = await once(sent, "response");
      return response;
    };
    const impatient = await start(items);
    const cut = await begin(impatient.plane);
    await impatient.plane.close({ graceMs: 100 });
    await expect(answerOf(cut)).rejects.toThrow();

    const patient = await start(items);
    const finished = await begin(patient.plane);
    // Somebody who asks nothing does not keep it.
    await sockets.connect(patient.plane.at(80));
    const closing = patient.plane.close({ graceMs: 600_000 });
    // Long enough for a plane that does not wait to be gone.
    await new Promise((resolve) => setTimeout(resolve, 600));
    release();
    expect((await answerOf(finished)).body).toBe("begun, done");
    await closing;
  });
});
