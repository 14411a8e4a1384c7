/**
 * The page of the admin server in a real Chromium: every view in both colour schemes, on wide and
 * narrow screens, by keyboard alone, and while things change.
 */

import { join } from "node:path";
import { type Browser, type Page, startChromium } from "../browser/chromium.ts";
import type { Target } from "../contestants.ts";
import { installDebian } from "../install.ts";
import type { Case, Room, Suite } from "../suite.ts";
import { startExample } from "./example.ts";
import { startLargeWorld } from "./large-world.ts";
import { Reader } from "./reader.ts";
import {
  BLAST_STEPS,
  KEYBOARD_STEPS,
  LARGE_STEPS,
  LIVE_STEPS,
  type Step,
  TEAM_STEPS,
  VIEW_STEPS,
} from "./steps.ts";
import { startTeamView } from "./team-view.ts";

export const page: Suite = {
  name: "page",
  source: "Debian's chromium",
  about: "Mergeway's own page, every view in both colour schemes, narrow, and by keyboard alone.",
  short: true,
  install: async () => void (await chromium()),
  start: async () => [],
  run,
};

function chromium(): Promise<string> {
  return installDebian("chromium", "chromium");
}

async function run({ contestant }: Target, room: Room): Promise<readonly Case[]> {
  if (contestant === "direct") return [];
  const folder = join(room.folder, `page-${contestant}`);
  const browser = await startChromium(await chromium(), join(folder, "chromium"));
  room.keep(browser.end);
  const example = await startExample(contestant, folder);
  room.keep(example.end);
  const usesAxe = contestant === "embedded";
  const cases: Case[] = [];
  for (const colours of ["light", "dark"] as const) {
    for (const width of [1280, 390]) {
      const part = `${colours}, ${width} wide`;
      cases.push(
        ...(await inBrowser(
          { browser, url: example.url, part, colours, width, usesAxe },
          VIEW_STEPS,
          example.change,
        )),
      );
    }
  }
  const usual = { browser, url: example.url, colours: "light", width: 1280, usesAxe } as const;
  cases.push(...(await inBrowser({ ...usual, part: "keyboard alone" }, KEYBOARD_STEPS, example.change)));
  cases.push(...(await inBrowser({ ...usual, part: "blast radius" }, BLAST_STEPS, example.change)));
  cases.push(...(await inBrowser({ ...usual, part: "changes" }, LIVE_STEPS, example.change)));
  await example.end();
  const team = await startTeamView();
  room.keep(team.end);
  cases.push(
    ...(await inBrowser({ ...usual, url: team.url, part: "a team's view" }, TEAM_STEPS, example.change)),
  );
  await team.end();
  const large = await startLargeWorld(room.short);
  room.keep(large.end);
  cases.push(
    ...(await inBrowser({ ...usual, url: large.url, part: "large world" }, LARGE_STEPS, example.change)),
  );
  await large.end();
  await browser.end();
  return cases;
}

interface Looking {
  readonly browser: Browser;
  readonly url: string;
  readonly part: string;
  readonly colours: "light" | "dark";
  readonly width: number;
  readonly usesAxe: boolean;
}

async function inBrowser(
  { browser, url, part, colours, width, usesAxe }: Looking,
  steps: Readonly<Record<string, Step>>,
  change: () => void,
): Promise<readonly Case[]> {
  const opened: Page = await browser.open("about:blank");
  const reader = new Reader(opened, { url, usesAxe });
  const cases: Case[] = [];
  try {
    await reader.look(colours, width);
    for (const [name, step] of Object.entries(steps)) {
      const failed = await step(reader, change).then(
        () => undefined,
        (error: Error) => error.message,
      );
      cases.push({
        part,
        name,
        ...(failed === undefined ? { outcome: "passed" } : { outcome: "failed", reason: failed }),
      });
    }
  } finally {
    await opened.close();
  }
  return cases;
}
