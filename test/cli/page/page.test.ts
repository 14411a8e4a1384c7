/** `mergeway page`: what whoever may read so much of a cluster is shown of it. */
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Resource } from "../../../src/api/resource.ts";
import type { MergedState } from "../../../src/view/merged-state.ts";
import type { Outline } from "../../../src/view/outline.ts";
import { folder, mergeway, type Running, start, until } from "../mergeway.ts";
import { ClusterDouble, RIVAL, type Rights, writtenResources } from "./cluster-double.ts";

const RIGHTS: Readonly<Record<string, Rights>> = {
  owner: {},
  viewer: { forbidden: ["secrets"] },
  team: { namespaces: ["ours"], forbidden: ["secrets"] },
};

function kubeconfig(server: string, token: string): string {
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "c", cluster: { server, "insecure-skip-tls-verify": true } }],
    users: [{ name: "u", user: { token } }],
    contexts: [{ name: "here", context: { cluster: "c", user: "u" } }],
    "current-context": "here",
  };
  return join(folder({ config: JSON.stringify(config) }), "config");
}

interface Opened {
  readonly cluster: ClusterDouble;
  readonly objects: readonly Resource[];
  readonly running: Running;
  readonly url: string;
  readonly key: string;
  readonly config: string;
  breakConnections(): void;
  /** The text of an answer, asked for with the key. */
  read(path: string): Promise<string>;
  outline(): Promise<Outline & { readonly scope: { readonly sees: string; readonly unread: string[] } }>;
}

async function open(user: string, ...flags: readonly string[]): Promise<Opened> {
  const objects = await writtenResources();
  const cluster = new ClusterDouble(objects, RIGHTS);
  const server = await cluster.start();
  const config = kubeconfig(server.url, user);
  const running = start(["page", "--kubeconfig", config, ...flags]);
  const [, url = "", key = ""] = await running.prints(/(http:\/\/127\.0\.0\.1:\d+)\/open\?key=(\S+)/);
  const read = async (path: string): Promise<string> => {
    const answer = await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${key}` } });
    return `${[...answer.headers].join("\n")}\n\n${await answer.text()}`;
  };
  return {
    cluster,
    objects,
    running,
    url,
    key,
    config,
    breakConnections: () => server.breakConnections(),
    read,
    outline: async () => {
      const text = await read("/api/v1/outline");
      return JSON.parse(text.slice(text.indexOf("\n\n"))) as never;
    },
  };
}

function listenersOf({ gateways }: Pick<Outline | MergedState, "gateways">): readonly unknown[] {
  return gateways.flatMap(({ owners }) =>
    owners.flatMap(({ name, precedence, listeners }) =>
      listeners.map(({ section, state, heldBy }) => [name, precedence, section, state, heldBy?.name]),
    ),
  );
}

describe("who may read everything", () => {
  test("sees both sides of a conflict, as the Gateway's owner", async () => {
    const { outline, read } = await open("owner");
    const shown = await outline();
    expect(shown.scope.sees).toBe("all");
    expect(listenersOf(shown)).toContainEqual(["mine", 3, "mine-0", "conflicted", `set-${RIVAL}`]);
    expect(await read("/api/v1/explain?url=http://mine.example.com/")).toContain('"outcome": "forward"');
  });
});

test("what the data plane has not taken is shown as its status says, whatever is computed", async () => {
  const { cluster, objects, outline } = await open("owner");
  const mine = objects.find(({ kind, metadata }) => kind === "ListenerSet" && metadata.name === "mine");
  const text = JSON.stringify(mine).replaceAll(
    /"type":"Programmed","status":"True","reason":"\w+","message":"[^"]*"/g,
    '"type":"Programmed","status":"False","reason":"Invalid","message":"the data plane refuses it"',
  );
  cluster.put(JSON.parse(text) as Resource);
  await until(async () => {
    const states = listenersOf(await outline()).filter((each) => (each as string[])[2] === "mine-1");
    return (states[0] as string[])[3] === "failed" ? true : undefined;
  }, "a listener that is not programmed");
});

describe("who may read everything that decides, and no Secrets", () => {
  test("sees who holds what, and the rest as the statuses tell it", async () => {
    const { outline, read } = await open("viewer");
    const shown = await outline();
    expect(shown.scope).toMatchObject({ sees: "merge", unread: ["secrets"] });
    expect(listenersOf(shown)).toContainEqual(["mine", 3, "mine-0", "conflicted", `set-${RIVAL}`]);
    expect(await read("/api/v1/explain?url=http://mine.example.com/")).toContain("may not read all of it");
  });
});

describe("a team", () => {
  test("sees what is theirs, as the controller has judged it", async () => {
    const { outline } = await open("team", "-n", "ours");
    const shown = await outline();
    expect(shown.scope.sees).toBe("part");
    expect(shown.gateways).toHaveLength(1);
    expect(shown.gateways[0]).toMatchObject({ namespace: "infra", name: "shared", isUnread: true });
    expect(listenersOf(shown)).toEqual([
      ["shared", 0, "web", "serving", undefined],
      ["mine", 0, "mine-0", "conflicted", undefined],
      ["mine", 0, "mine-1", "serving", undefined],
    ]);
    expect([...new Set(shown.routes.map(({ name }) => name))].sort()).toEqual(["direct-route", "mine-route"]);
    expect(shown.strayRoutes.map(({ name }) => name)).toEqual(["lost-route"]);
    expect(shown.backends).toContainEqual({
      kind: "Service",
      namespace: "ours",
      name: "mine",
      port: 80,
      endpoints: 1,
    });
  });

  test("gets no byte of another tenant's names from any endpoint, error, event or output", async () => {
    const { url, key, read, running, cluster, objects, outline } = await open("team", "-n", "ours");
    const listed = await read("/");
    const { endpoints } = JSON.parse(listed.slice(listed.indexOf("\n\n"))) as {
      endpoints: { path: string }[];
    };
    const paths = endpoints.map(({ path }) => path).filter((path) => path !== "/api/v1/events");
    const asked = [
      ...paths,
      "/",
      "/nothing",
      "/api/v1/explain?url=http://shop.example.com/",
      "/api/v1/explain?url=no",
      "/api/v1/listeners?gateway=infra/shared",
      "/api/v1/hostnames?namespace=infra",
    ];
    const before = (await Promise.all(asked.map(read))).join("\n");
    expect(before).toContain("mine.example.com");
    expect(before).not.toContain(RIVAL);
    // A set of the rivals goes; the controller then writes the team's new status.
    cluster.remove(`ListenerSet/rival-${RIVAL}/set-${RIVAL}`);
    const mine = objects.find(({ kind, metadata }) => kind === "ListenerSet" && metadata.name === "mine");
    cluster.put(serving(mine as Resource & { readonly kind: "ListenerSet" }));
    await until(async () => {
      const states = listenersOf(await outline()).map((each) => (each as string[])[3]);
      return states.includes("conflicted") ? undefined : true;
    }, "the end of the conflict");
    const events = await firstEvents({ url, key });
    expect(events).toContain('"before":"conflicted"');
    expect([...(await Promise.all(asked.map(read))), events].join("\n")).not.toContain(RIVAL);
    expect(running.stdout() + running.stderr()).not.toContain(RIVAL);
  });

  test("counts are of what is theirs: they stay the same whatever others do", async () => {
    const { read, cluster } = await open("team", "-n", "ours");
    const before = await read("/metrics");
    const totals = /^mergeway_(listener_state|stray_routes).*$/gm;
    expect(before.match(totals)).not.toBeNull();
    cluster.remove(`ListenerSet/rival-${RIVAL}/set-${RIVAL}`);
    expect((await read("/metrics")).match(totals)).toEqual(before.match(totals));
  });

  test("is told of a conflict by status and who, without the holder", async () => {
    const { config } = await open("team", "-n", "ours");
    const flags = ["--kubeconfig", config, "-n", "ours"];
    const status = await mergeway(["status", ...flags]);
    expect(status.stdout).toContain("HostnameConflict");
    const who = await mergeway(["who", "shop.example.com", ...flags]);
    expect(who.stdout).toContain("another team holds it");
    expect(status.stdout + status.stderr + who.stdout + who.stderr).not.toContain(RIVAL);
  });

  test("sees nothing any more when its right is taken away", async () => {
    const { cluster, running, breakConnections } = await open("team", "-n", "ours");
    cluster.rights = new Map([["team", { namespaces: ["ours"], forbidden: ["secrets", "listenersets"] }]]);
    breakConnections();
    expect(await running.exited).toBe(2);
    expect(running.stderr()).toContain("may not read listenersets.gateway.networking.k8s.io any more");
  });
});

describe("the server on loopback", () => {
  test("lets nobody in without the key, and the link gives a cookie that no script reads", async () => {
    const { url, key } = await open("owner");
    for (const path of ["/", "/api/v1/outline", "/page/main.js", "/healthz", "/open", "/open?key=no"]) {
      const { status } = await fetch(`${url}${path}`);
      expect([path, status]).toEqual([path, 401]);
    }
    const wrong = await fetch(`${url}/api/v1/outline`, { headers: { authorization: "Bearer x" } });
    expect(wrong.status).toBe(401);
    const opened = await fetch(`${url}/open?key=${key}`, { redirect: "manual" });
    expect([opened.status, opened.headers.get("location")]).toEqual([303, "/"]);
    const cookie = opened.headers.get("set-cookie") ?? "";
    expect(cookie).toMatch(/^mergeway-\w+=\S+; Path=\/; HttpOnly; SameSite=Lax$/);
    const shown = await fetch(`${url}/api/v1/outline`, { headers: { cookie: cookie.split(";")[0] ?? "" } });
    expect(shown.status).toBe(200);
  });

  test("is not opened for other machines", async () => {
    const { code, stderr } = await mergeway(["page", "--address", "0.0.0.0:0"]);
    expect(code).toBe(2);
    expect(stderr).toContain("without TLS");
  });
});

function serving(set: Resource & { readonly kind: "ListenerSet" }): Resource {
  const text = JSON.stringify(set.status?.listeners?.[1]?.conditions);
  const listeners = set.status?.listeners?.map((each) => ({
    ...each,
    conditions: JSON.parse(text) as never,
  }));
  return { ...set, status: { ...set.status, listeners: listeners ?? [] } };
}

/** The events that are kept, up to the first one; the stream itself does not end. */
async function firstEvents({ url, key }: Pick<Opened, "url" | "key">): Promise<string> {
  const headers = { authorization: `Bearer ${key}` };
  const answer = await fetch(`${url}/api/v1/events?after=0`, { headers });
  let text = "";
  for await (const chunk of answer.body ?? []) {
    text += Buffer.from(chunk).toString();
    if (text.includes("data: ")) break;
  }
  return text;
}
