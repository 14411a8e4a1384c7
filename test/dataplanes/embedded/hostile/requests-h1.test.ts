import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Sockets } from "../../support/sockets.ts";
import { corpusH1, type HostileRequest, type Passed } from "./corpus-h1.ts";
import { type HostileGateway, startGateway } from "./gateway.ts";
import { type RawAnswer, talk } from "./raw-http.ts";
import { header, Observed, type SeenRequest, strictBackend } from "./strict-backend.ts";

const sockets = new Sockets();
const observed = new Observed();
let gateway: HostileGateway;
let cases = 0;

beforeAll(async () => {
  gateway = await startGateway({
    public: await strictBackend("public", sockets, observed),
    secret: await strictBackend("secret", sockets, observed),
  });
});

afterAll(async () => {
  await gateway.close();
  await sockets.release();
});

/** An innocent bystander, over the same pools to the same backends. */
async function bystander(id: string): Promise<void> {
  for (const host of ["public", "secret"]) {
    const answers = await talk(
      sockets,
      gateway.port,
      `GET /bystander HTTP/1.1\r\nHost: ${host}.example\r\nX-Id: ${id}\r\nConnection: close\r\n\r\n`,
    );
    expect(answers.map(({ status }) => status)).toEqual([200]);
    expect(JSON.parse(answers[0]?.body ?? "")).toEqual({
      backend: host,
      method: "GET",
      path: "/bystander",
      host: `${host}.example`,
      body: "",
      id,
    });
  }
}

function summary({ backend, method, path, body }: SeenRequest): Passed {
  return { backend: backend as Passed["backend"], method, path, body };
}

function check(test: HostileRequest, answers: readonly RawAnswer[], seen: readonly SeenRequest[]): void {
  const passed = test.passed ?? [];
  const id = header(seen[0], "x-id") ?? "";
  const expected = passed.map(({ backend, path, method = "GET", body = "" }) => ({
    backend,
    method,
    path,
    body: body.replaceAll("case-0000", id),
  }));
  // Requests to different backends arrive in any order, the answers in the client's own.
  const whole = seen.filter(({ complete }) => complete).map(summary);
  expect(whole.toSorted(byPath)).toEqual(expected.toSorted(byPath));
  for (const [i, { path, host }] of passed.entries()) {
    const { status, body } = answers[i] ?? {};
    expect(status).toBe(200);
    expect(JSON.parse(body ?? "")).toMatchObject({ path, ...(host !== undefined && { host }) });
  }
  const refusals = answers.slice(passed.length);
  const wanted = test.refused;
  if (wanted === undefined) {
    expect(refusals).toEqual([]);
  } else {
    expect(refusals.length, "one refusal, then the end").toBe(wanted.length === 0 ? refusals.length : 1);
    if (wanted.length > 0) expect(wanted).toContain(refusals[0]?.status);
    else for (const { status } of refusals) expect(status).toBeGreaterThanOrEqual(400);
  }
}

function byPath(a: Passed, b: Passed): number {
  return a.path < b.path ? -1 : 1;
}

describe.each(corpusH1)("HTTP/1.1: %s", (_title, requests) => {
  it.each(requests.map((request) => [request.name, request] as const))("%s", async (_name, request) => {
    const id = `case-${String(++cases).padStart(4, "0")}`;
    const answers = await talk(sockets, gateway.port, request.send.replaceAll("case-0000", id));
    await bystander(`after-${id}`);
    check(request, answers, observed.of(id));
    // Anything that reached a backend without the id of a case would be somebody's invention.
    expect(
      observed.requests.filter((seen) => !/^(after-)?case-\d+$/.test(header(seen, "x-id") ?? "")),
    ).toEqual([]);
    expect(observed.violations).toEqual([]);
  });
});
