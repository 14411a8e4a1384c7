import { element } from "./element.ts";

export type Tone = "good" | "bad" | "warn" | "quiet";

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
