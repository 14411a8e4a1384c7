/** A person in front of the page: looks, presses keys, and reads. */

import type { Page } from "../browser/chromium.ts";
import { SuiteFailure } from "../suite.ts";
import { AXE, LOAD_AXE } from "./axe.ts";

const SECONDS = 30;

/** Codes of the keys that are pressed; others are characters. */
const KEYS: Readonly<
  Record<string, { readonly code: string; readonly number: number; readonly text?: string }>
> = {
  Enter: { code: "Enter", number: 13, text: "\r" },
  Escape: { code: "Escape", number: 27 },
  Tab: { code: "Tab", number: 9 },
  ArrowLeft: { code: "ArrowLeft", number: 37 },
  ArrowUp: { code: "ArrowUp", number: 38 },
  ArrowRight: { code: "ArrowRight", number: 39 },
  ArrowDown: { code: "ArrowDown", number: 40 },
  Home: { code: "Home", number: 36 },
  End: { code: "End", number: 35 },
};

export class Reader {
  readonly #page: Page;
  readonly #url: string;

  readonly #usesAxe: boolean;

  /** The page is the same for every data plane, so axe looks at it once. */
  constructor(page: Page, { url, usesAxe }: { readonly url: string; readonly usesAxe: boolean }) {
    this.#page = page;
    this.#url = url;
    this.#usesAxe = usesAxe;
  }

  /** Opens the page with these colours and in this width, and watches for errors. */
  async look(colours: "light" | "dark", width: number): Promise<void> {
    await this.#page.command("Emulation.setDeviceMetricsOverride", {
      width,
      height: 800,
      deviceScaleFactor: 1,
      mobile: width < 500,
    });
    const features = [{ name: "prefers-color-scheme", value: colours }];
    await this.#page.command("Emulation.setEmulatedMedia", { features });
    const source = `window.errors = [];
      addEventListener("error", ({ message }) => errors.push(message));
      addEventListener("unhandledrejection", ({ reason }) => errors.push(String(reason)));
      addEventListener("securitypolicyviolation", ({ violatedDirective }) => errors.push(violatedDirective));`;
    await this.#page.command("Page.addScriptToEvaluateOnNewDocument", { source });
    await this.#page.command("Page.navigate", { url: `${this.#url}/` });
    await this.sees("document.querySelector('[role=treeitem]')");
  }

  async goTo(fragment: string): Promise<void> {
    await this.#page.evaluate(`location.hash = ${JSON.stringify(fragment)}`);
  }

  read(expression: string): Promise<unknown> {
    return this.#page.evaluate(expression);
  }

  /** Waits until it is true. */
  sees(expression: string): Promise<void> {
    return this.#page.waitFor(expression, SECONDS);
  }

  seesText(selector: string, text: string): Promise<void> {
    return this.sees(
      `document.querySelector(${JSON.stringify(selector)})?.innerText.includes(${JSON.stringify(text)})`,
    );
  }

  /** The expression gives a list of what is wrong. */
  async findsNothing(expression: string): Promise<void> {
    const found = (await this.#page.evaluate(expression)) as readonly unknown[];
    if (found.length > 0) throw new SuiteFailure(JSON.stringify(found.slice(0, 5)));
  }

  async passesAxe(): Promise<void> {
    if (!this.#usesAxe) return;
    if ((await this.read("typeof axe")) === "undefined") await this.read(LOAD_AXE);
    await this.findsNothing(AXE);
  }

  async press(...keys: readonly string[]): Promise<void> {
    for (const key of keys) {
      const { code, number, text } = KEYS[key] ?? { code: "", number: 0, text: key };
      const event = { key, code, windowsVirtualKeyCode: number, ...(text === undefined ? {} : { text }) };
      await this.#page.command("Input.dispatchKeyEvent", { type: "keyDown", ...event });
      await this.#page.command("Input.dispatchKeyEvent", {
        type: "keyUp",
        key,
        code,
        windowsVirtualKeyCode: number,
      });
    }
  }

  async type(text: string): Promise<void> {
    await this.press(...text);
  }
}
