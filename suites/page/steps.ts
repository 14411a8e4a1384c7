/** What is asked of the page, by the name of the case. */

import { SuiteFailure } from "../suite.ts";
import { ERRORS, FOCUS, LOW_CONTRAST, OVERFLOWING, UNNAMED } from "./checks.ts";
import type { Reader } from "./reader.ts";

export type Step = (reader: Reader, change: () => void) => Promise<void>;

const MARKUP = "http://<img src=x onerror=alert(1)>/";

/** Each view, and a text that it must show. */
const VIEWS: readonly (readonly [name: string, fragment: string, text: string])[] = [
  ["the tree", "#/tree", "HostnameConflict"],
  ["the details of a node", "#/tree?at=owner:ListenerSet/team-zest/zest", "Conditions"],
  ["the rollout of a Gateway", "#/tree?at=gateway:platform/shared", "Rollout"],
  ["the hostnames", "#/hostnames", "same age: first in the alphabet by namespace/name"],
  ["an explanation", "#/explain?url=http://coffee.example.com:PORT/", "Forwarded"],
  ["the certificates", "#/certificates", "team-tea/tea-cert"],
  ["the timeline", "#/timeline", "serves it"],
];

export const VIEW_STEPS: Readonly<Record<string, Step>> = {
  ...Object.fromEntries(
    VIEWS.map(([name, fragment, text]): [string, Step] => [
      `${name}: shown, named, with contrast, within the screen, and nothing found by axe`,
      async (reader) => {
        await reader.goTo(fragment.replace("PORT", await httpPort(reader)));
        await reader.seesText("main", text);
        await reader.findsNothing(LOW_CONTRAST);
        await reader.findsNothing(UNNAMED);
        await reader.passesAxe();
        await reader.findsNothing(OVERFLOWING);
      },
    ]),
  ),
  async "a link with a place opens that place"(reader) {
    await reader.goTo("#/tree?at=listener:ListenerSet/team-zest/zest%23http");
    await reader.seesText("[aria-selected=true]", "coffee.example.com");
    await reader.seesText(".details", "Held by");
  },
  async "text of a request stays text"(reader) {
    await reader.goTo(`#/explain?${new URLSearchParams({ url: MARKUP })}`);
    await reader.seesText(".answer", "<img");
    await reader.findsNothing("[...document.querySelectorAll('main img')].map(String)");
  },
  async "no error, and nothing against the Content-Security-Policy"(reader) {
    await reader.findsNothing(ERRORS);
  },
};

export const KEYBOARD_STEPS: Readonly<Record<string, Step>> = {
  async "/ goes to the search, and each key filters"(reader) {
    await reader.press("/");
    await focusIs(reader, "search");
    await reader.type("zest");
    await reader.sees("document.querySelectorAll('[role=treeitem].owner').length === 1");
    await reader.seesText("[role=tree]", "team-zest/zest");
    await reader.sees("location.hash.includes('q=zest')");
  },
  async "Enter goes to the tree, and arrows move in it"(reader) {
    await reader.press("Enter");
    await focusIs(reader, "tree");
    await reader.press("Home", "ArrowDown");
    await reader.seesText("[aria-selected=true]", "team-zest/zest");
    await reader.press("ArrowRight");
    await reader.seesText("[aria-selected=true]", "coffee.example.com");
    await reader.seesText(".details", "HostnameConflict");
    await reader.press("ArrowLeft", "ArrowLeft", "ArrowLeft");
    await reader.sees(
      "document.querySelector('[role=treeitem].owner').getAttribute('aria-expanded') === 'false'",
    );
    await reader.press("Enter");
    await reader.sees(
      "document.querySelector('[role=treeitem].owner').getAttribute('aria-expanded') === 'true'",
    );
  },
  async "the chosen node is named to a screen reader and in the URL"(reader) {
    const active =
      "document.getElementById(document.querySelector('[role=tree]').getAttribute('aria-activedescendant'))";
    await reader.sees(`${active}.getAttribute('aria-selected') === 'true'`);
    await reader.sees("location.hash.includes('at=owner:ListenerSet/team-zest/zest')");
  },
  async "Escape ends the search"(reader) {
    await reader.press("/", "Escape");
    await reader.sees("document.querySelectorAll('[role=treeitem].owner').length === 4");
    await focusIs(reader, "tree");
  },
  async "every view is reached with Tab and Enter"(reader) {
    for (const view of ["Hostnames", "Explain", "Certificates", "Timeline", "Tree"]) {
      await tabTo(reader, view);
      await reader.press("Enter");
      await reader.sees(`document.title.startsWith("${view}")`);
    }
  },
  async "a request is explained without a mouse, and its links lead into the tree"(reader) {
    await reader.goTo("#/explain");
    await reader.sees("document.querySelector('#url')");
    const port = await httpPort(reader);
    await tabTo(reader, "url");
    await reader.type(`http://tea.example.com:${port}/`);
    await reader.press("Enter");
    await reader.seesText(".outcome", "Forwarded");
    await tabTo(reader, "ListenerSet team-tea/tea, listener http");
    await reader.press("Enter");
    await reader.seesText("[aria-selected=true]", "tea.example.com");
  },
  async "the colours change with a key, and stay so"(reader) {
    await tabTo(reader, "theme");
    await reader.press("Enter", "Enter");
    await reader.sees("document.documentElement.dataset.theme === 'dark'");
    await reader.read("window.isOld = true; location.reload()");
    await reader.sees(
      "!window.isOld && document.documentElement.dataset.theme === 'dark' && document.querySelector('[role=treeitem]')",
    );
    await reader.findsNothing(LOW_CONTRAST);
  },
  async "no error, and nothing against the Content-Security-Policy"(reader) {
    await reader.findsNothing(ERRORS);
  },
};

export const BLAST_STEPS: Readonly<Record<string, Step>> = {
  async "the blast radius of a set is asked for without a mouse"(reader) {
    await reader.goTo("#/tree?at=owner:ListenerSet/team-coffee/coffee");
    await reader.seesText(".details h2", "team-coffee/coffee");
    await tabTo(reader, "If this ListenerSet were deleted…");
    await reader.press("Enter");
    await reader.seesText(".blast", "changes hands");
    await reader.seesText(".blast", "ListenerSet team-zest/zest, listener http");
    await reader.findsNothing(LOW_CONTRAST);
    await reader.passesAxe();
  },
  async "nothing of it is done"(reader) {
    await reader.goTo("#/hostnames?q=coffee");
    await reader.seesText(".hostnames", "ListenerSet team-coffee/coffee");
    await reader.findsNothing(ERRORS);
  },
};

/** A team that may read its own namespace alone. */
export const TEAM_STEPS: Readonly<Record<string, Step>> = {
  ...Object.fromEntries(
    [
      ["tree", "you may not read it"],
      ["hostnames", "another team"],
      ["explain", "you may not read all of it"],
      ["certificates", "zest-cert"],
      ["timeline", "Nothing has changed yet"],
    ].map(([view = "", text = ""]): [string, Step] => [
      `the ${view} of a team has nothing of others, and nothing found by axe`,
      async (reader) => {
        await reader.goTo(`#/${view}`);
        await reader.seesText("main", text);
        await reader.findsNothing(
          `["team-coffee", "team-tea"].filter((name) => document.documentElement.outerHTML.includes(name))`,
        );
        await reader.passesAxe();
      },
    ]),
  ),
  async "the page says whose view it is, and no error"(reader) {
    await reader.seesText(".scope", "your view: team-zest");
    await reader.findsNothing(ERRORS);
  },
};

export const LIVE_STEPS: Readonly<Record<string, Step>> = {
  async "a conflict that ends is seen in the tree without a reload"(reader, change) {
    await reader.goTo("#/tree?at=listener:ListenerSet/team-zest/zest%23http");
    await reader.seesText("[aria-selected=true]", "conflicted");
    change();
    await reader.seesText("[aria-selected=true]", "serving");
    await reader.sees("!document.querySelector('[role=tree]').innerText.includes('team-coffee')");
  },
  async "the timeline says so"(reader) {
    await reader.goTo("#/timeline?q=team-zest");
    await reader.seesText(".timeline", "ListenerSet team-zest/zest, listener http serves it");
  },
  async "no error, and nothing against the Content-Security-Policy"(reader) {
    await reader.findsNothing(ERRORS);
  },
};

/** Bounds for a busy machine; docs/reference/page.md has what was measured on a quiet one. */
const MOST_ELEMENTS = 1_500;
const SEARCH_MS = 300;

export const LARGE_STEPS: Readonly<Record<string, Step>> = {
  async "only what is in sight is drawn"(reader) {
    for (const view of ["tree", "hostnames", "certificates"]) {
      await reader.goTo(`#/${view}`);
      await reader.sees(`document.title.toLowerCase().startsWith("${view}")`);
      await reader.sees(`document.querySelectorAll("*").length < ${MOST_ELEMENTS}`);
    }
  },
  async "the last row is reached with one key"(reader) {
    await reader.goTo("#/tree");
    await reader.sees("document.querySelector('[role=tree]')");
    await reader.read("document.querySelector('[role=tree]').focus()");
    await reader.press("End");
    const place = "document.querySelector('[aria-selected=true]')?.getAttribute('aria-posinset')";
    await reader.sees(`Number(${place}) > 200`);
    await reader.sees(
      "document.querySelector('[aria-selected=true]').getBoundingClientRect().bottom <= innerHeight",
    );
  },
  async "a search finds one route among all at once"(reader) {
    const took = await reader.read(`(() => {
      const search = document.querySelector("#search");
      search.value = "team-3/route-7-5";
      const began = performance.now();
      search.dispatchEvent(new Event("input"));
      document.body.getBoundingClientRect();
      return performance.now() - began;
    })()`);
    await reader.sees("document.querySelectorAll('[role=treeitem].route').length === 1");
    if (Number(took) > SEARCH_MS) throw new SuiteFailure(`it took ${took} ms`);
  },
};

async function httpPort(reader: Reader): Promise<string> {
  const script = `fetch("/api/v1/hostnames").then((response) => response.json())
    .then(({ items }) => String(Math.min(...items.filter(({ hostname }) => hostname === "").map(({ port }) => port))))`;
  return String(await reader.read(script));
}

interface Focus {
  readonly id: string;
  readonly className: string;
  readonly isVisible: boolean;
}

async function focusIs(reader: Reader, name: string): Promise<void> {
  const focus = (await reader.read(FOCUS)) as Focus;
  const isThere = focus.id === name || focus.className.split(" ").includes(name);
  if (!isThere) throw new SuiteFailure(`the focus is on ${JSON.stringify(focus)}, not on ${name}`);
  if (!focus.isVisible) throw new SuiteFailure(`the focus on ${name} cannot be seen`);
}

/** Presses Tab until something of this text, id or class has the focus, which must be visible. */
async function tabTo(reader: Reader, name: string): Promise<void> {
  const isThere = `(({ id, classList, textContent }) => id === ${JSON.stringify(name)} || textContent === ${JSON.stringify(name)}
    || [...classList].includes(${JSON.stringify(name)}))(document.activeElement)`;
  for (let turn = 0; turn < 60; turn++) {
    await reader.press("Tab");
    if ((await reader.read(isThere)) !== true) continue;
    const { isVisible } = (await reader.read(FOCUS)) as Focus;
    if (!isVisible) throw new SuiteFailure(`the focus on ${name} cannot be seen`);
    return;
  }
  throw new SuiteFailure(`Tab never comes to ${name}`);
}
