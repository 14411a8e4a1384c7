import { beforeAll, describe, expect, test } from "vitest";
import { OWN, type SustainedAttack, WAIT } from "./sustained-attack.ts";
import { FRONTS, type Front, HOST, http, route, set } from "./world.ts";

/** Whatever a data plane might take for a command of its own. */
const COMMANDS =
  "%ENVIRONMENT(MERGEWAY_DRAIN_TOKEN)% %REQ(cookie)% %DYNAMIC_METADATA(a)% $(jndi) $1 \\1 100%";
const DEN = [{ name: "den", port: 8080 }];
const LABEL = "l".repeat(63);

interface Echo {
  readonly path: string;
  readonly headers: Readonly<Record<string, readonly string[]>>;
}

interface Served {
  readonly what: string;
  readonly rule: object;
  readonly path?: string;
  readonly sees: (echo: Echo, headers: Readonly<Record<string, unknown>>) => void;
  readonly status?: number;
}

function edits(type: "Request" | "Response", value: string): object {
  const modifier = { set: [{ name: "x-odd", value }] };
  return {
    filters: [
      {
        type: `${type}HeaderModifier`,
        [type === "Request" ? "requestHeaderModifier" : "responseHeaderModifier"]: modifier,
      },
    ],
    backendRefs: DEN,
  };
}

function rewriting(replacePrefixMatch: string): object {
  const path = { type: "ReplacePrefixMatch", replacePrefixMatch };
  return {
    matches: [{ path: { type: "PathPrefix", value: "/old" } }],
    filters: [{ type: "URLRewrite", urlRewrite: { path } }],
    backendRefs: DEN,
  };
}

function matching(path: string): object {
  return { matches: [{ path: { type: "RegularExpression", value: path } }], backendRefs: DEN };
}

const SERVED: readonly Served[] = [
  {
    what: "commands in a request's header",
    rule: edits("Request", COMMANDS),
    sees: ({ headers }) => expect(headers["X-Odd"]).toEqual([COMMANDS]),
  },
  {
    what: "commands in an answer's header",
    rule: edits("Response", COMMANDS),
    sees: (_echo, headers) => expect(headers["x-odd"]).toBe(COMMANDS),
  },
  {
    what: "a header as long as it may be",
    rule: edits("Request", "v".repeat(4096)),
    sees: ({ headers }) => expect(headers["X-Odd"]?.[0]).toHaveLength(4096),
  },
  {
    what: "references to groups in a rewritten path",
    rule: rewriting("/\\1$1\\0"),
    path: "/old/x",
    sees: ({ path }) => expect(decodeURIComponent(path)).toBe("/\\1$1\\0/x"),
  },
  {
    what: "commands in the path of a redirect",
    rule: {
      filters: [
        {
          type: "RequestRedirect",
          requestRedirect: { path: { type: "ReplaceFullPath", replaceFullPath: "/%REQ(host)%" } },
        },
      ],
    },
    status: 302,
    sees: (_echo, headers) => expect(headers["location"]).toMatch(/\/%(25)?REQ(\(|%28)host(\)|%29)%(25)?$/),
  },
  {
    what: "a time limit of years",
    rule: { timeouts: { request: "99999h99999h", backendRequest: "99999h" }, backendRefs: DEN },
    sees: ({ path }) => expect(path).toBe("/"),
  },
  {
    what: "an expression that takes others long",
    rule: matching("/(x+x+)+y"),
    path: `/${"x".repeat(2000)}y`,
    sees: ({ path }) => expect(path).toHaveLength(2002),
  },
  {
    what: "a header of every character that a name may have",
    rule: {
      matches: [{ headers: [{ name: "x!#$%&'*+-.^_`|~", value: "never" }] }, { path: { value: "/" } }],
      backendRefs: DEN,
    },
    sees: ({ path }) => expect(path).toBe("/"),
  },
];

/** Refused by the API server or by us; either way nobody is served by it. */
const REFUSED: readonly (readonly [what: string, rule: object])[] = [
  ["a line break in a header", edits("Request", "a\r\nx-injected: yes")],
  ["letters whose lower bytes break a line, in a header", edits("Request", "\u560d\u560ax-injected: yes")],
  ["a zero in a header", edits("Response", "a\u0000b")],
  ["a line break in a rewritten path", rewriting("/a HTTP/1.1\r\nx-injected: yes\r\n\r\n")],
  ["an expression that is none", matching("/[")],
  ["an expression as large as a program", matching("/((a{100}){100}){100}")],
  ["an expression that looks back", matching("/(a)\\1")],
  [
    "a copy of requests to what is alice's",
    {
      filters: [
        {
          type: "RequestMirror",
          requestMirror: { backendRef: { namespace: "alice", name: "vault", port: 8080 } },
        },
      ],
      backendRefs: DEN,
    },
  ],
];

/** What a tenant may write, and no data plane may stumble over. */
export function oddValues(attack: () => SustainedAttack): void {
  describe.each(FRONTS)("odd values on $plane", (front) => oddOn(attack, front));
}

function oddOn(attack: () => SustainedAttack, front: Front): void {
  const parent = `odd-${front.plane}`;
  const host = (name: string): string => `${name}.${parent}.mallory.example.com`;

  /** The status of the API server's answer. */
  async function write(name: string, rule: object): Promise<number> {
    const spec = {
      parentRefs: [{ kind: "ListenerSet", name: parent, sectionName: "web" }],
      hostnames: [host(name)],
      rules: [rule],
    };
    const manifest = route(`mallory/${name}-${front.plane}`, spec);
    return (await attack().mallory.create(`${OWN}/httproutes`, manifest)).status;
  }

  beforeAll(async () => {
    const listeners = [
      http(`*.${parent}.mallory.example.com`),
      { ...http(`*.${LABEL}.${LABEL}.${LABEL}.example.com`), name: "long" },
    ];
    await attack().writes("listenersets", set(`mallory/${parent}`, listeners, front.gateway));
    expect(await write("control", { backendRefs: DEN })).toBe(201);
  });

  test("a name as long as it may be", async () => {
    await expect
      .poll(
        async () => (await attack().read(`${OWN}/listenersets/${parent}`)).status?.listeners?.length,
        WAIT,
      )
      .toBe(2);
    await expect
      .poll(async () => (await attack().ask(front, `a.${LABEL}.${LABEL}.${LABEL}.example.com`)).status, WAIT)
      .toBe(404);
  });

  test.each(SERVED.map((each, at) => ({ ...each, name: `served-${at}` })))(
    "$what: taken as it is written",
    async ({ name, rule, path = "/", status = 200, sees }) => {
      expect(await write(name, rule)).toBe(201);
      await expect.poll(async () => (await attack().ask(front, host(name), path)).status, WAIT).toBe(status);
      const { body, headers } = await attack().ask(front, host(name), path);
      sees((status === 200 ? JSON.parse(body) : {}) as Echo, headers);
    },
  );

  test.each(REFUSED.map(([what, rule], at) => ({ what, rule, name: `refused-${at}` })))(
    "$what: refused, and nothing else is",
    async ({ name, rule }) => {
      const status = await write(name, rule);
      if (status !== 422) {
        expect(status).toBe(201);
        await expect
          .poll(async () => Object.values(await attack().parentOf(`${name}-${front.plane}`)), WAIT)
          .toContainEqual(expect.stringMatching(/^False\//));
      }
      // Made later, and served: by then the data plane has had its chance to stumble.
      const after = `after-${name}`;
      expect(await write(after, { backendRefs: DEN })).toBe(201);
      await expect.poll(() => attack().servedBy(host(after), front), WAIT).toBe("mallory");
      expect(await attack().servedBy(host("control"), front)).toBe("mallory");
      expect(await attack().servedBy(HOST, front)).toBe("alice");
    },
  );
}
