import type { Tone } from "../model/row-text.ts";
import { element } from "./element.ts";

/** The mark says the same as the colour, for people who do not see it. */
const MARKS: Readonly<Record<Tone, string>> = { good: "✓", bad: "✕", warn: "!", quiet: "·" };

export function pill(tone: Tone, text: string): HTMLElement {
  return element(
    "span",
    { class: `pill ${tone}` },
    element("span", { "aria-hidden": "true", class: "mark" }, MARKS[tone]),
    text,
  );
}
