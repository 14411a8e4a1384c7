/**
 * Programs whose pages live on WebSockets, in a real Chromium: over https it asks for them with
 * HTTP/2 (RFC 8441).
 */

import { join } from "node:path";
import { lastingPort } from "../../test/dataplanes/support/lasting-port.ts";
import type { Target } from "../contestants.ts";
import { installDebian } from "../install.ts";
import { serve } from "../program.ts";
import type { Backend, Case, Room, Suite } from "../suite.ts";
import { APPS, type App, type Place } from "./apps.ts";
import { type Browser, startChromium } from "./chromium.ts";

export const browser: Suite = {
  name: "browser",
  source: `Debian's chromium, with ${APPS.map(({ source }) => source).join(", ")}`,
  about: "Programs whose pages live on WebSockets, in a real Chromium over http and https.",
  short: true,
  async install(room) {
    await chromium();
    for (const app of chosenApps(room)) await app.install();
  },
  async start(room) {
    const backends: Backend[] = [];
    // One after the other: what one has started is ended when the next one fails.
    for (const app of chosenApps(room)) backends.push(await startApp(app, room));
    return backends;
  },
  run,
};

function chromium(): Promise<string> {
  return installDebian("chromium", "chromium");
}

function chosenApps(room: Room): readonly App[] {
  return APPS.filter((app) => app.short || !room.short);
}

/** The same folder serves both forms of a program, so that a step finds it whichever is asked. */
function folderOf(app: App, room: Room, form: "http" | "https"): string {
  return join(room.folder, `${app.hostname}-${form}`);
}

async function startApp(app: App, room: Room): Promise<Backend> {
  const [port, tlsPort] = [await lastingPort(), await lastingPort()];
  const places: readonly Place[] = [
    { folder: folderOf(app, room, "http"), port },
    ...(room.short ? [] : [{ folder: folderOf(app, room, "https"), port: tlsPort, tls: room.certificates }]),
  ];
  for (const place of places) {
    const log = join(room.folder, `${app.hostname}-${place.port}.log`);
    room.keep((await serve(await app.program(place), log, place.port)).end);
  }
  const name = app.hostname.split(".")[0] ?? "";
  return { name, hostname: app.hostname, protocol: "http", port, ...(room.short ? {} : { tlsPort }) };
}

async function run(target: Target, room: Room): Promise<readonly Case[]> {
  const folder = join(room.folder, `chromium-${target.contestant}`);
  const started = await startChromium(await chromium(), folder);
  room.keep(started.end);
  const cases: Case[] = [];
  for (const app of chosenApps(room)) {
    const address = target.address(app.hostname.split(".")[0] ?? "");
    for (const form of ["http", "https"] as const) {
      const port = address[form];
      if (port === undefined) continue;
      // Behind a gateway the program is the one without TLS, in whatever form it is asked.
      const served = target.contestant === "direct" ? form : "http";
      const place = { folder: folderOf(app, room, served), port };
      cases.push(...(await useApp(app, place, started, form)));
    }
  }
  await started.end();
  return cases;
}

async function useApp(app: App, place: Place, started: Browser, form: string): Promise<readonly Case[]> {
  const part = `${app.name}, ${form}`;
  const names = Object.keys(app.steps);
  const all = (reason: string): readonly Case[] =>
    names.map((name) => ({ part, name, outcome: "failed", reason }));
  const page = await started.open(`${form}://${app.hostname}:${place.port}/`).catch((error: Error) => error);
  if (page instanceof Error) return all(page.message);
  const cases: Case[] = [];
  for (const [name, step] of Object.entries(app.steps)) {
    const failed = await step(page, place).then(
      () => undefined,
      (error: Error) => error.message,
    );
    cases.push({
      part,
      name,
      ...(failed === undefined ? { outcome: "passed" } : { outcome: "failed", reason: failed }),
    });
  }
  await page.close();
  return cases;
}
