/** Scripts that run in the page; each gives a list of what is wrong. */

/** Texts with less contrast than WCAG 2.2 asks for (1.4.3, level AA). */
export const LOW_CONTRAST = `(() => {
  const parse = (text) => {
    const canvas = new OffscreenCanvas(1, 1).getContext("2d");
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha] = canvas.getImageData(0, 0, 1, 1).data;
    return [red, green, blue, alpha / 255];
  };
  const linear = (value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  const luminance = ([red, green, blue]) => 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
  const groundOf = (element) => {
    for (let at = element; at !== null; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour[3] === 1) return colour;
    }
    return parse("white");
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
    const element = node.parentElement;
    if (node.textContent.trim() === "" || !element.checkVisibility() || element.closest("noscript")) continue;
    const style = getComputedStyle(element);
    const [one, other] = [luminance(parse(style.color)), luminance(groundOf(element))].sort((a, b) => b - a);
    const contrast = (one + 0.05) / (other + 0.05);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (contrast < (isLarge ? 3 : 4.5)) found.push([node.textContent.trim().slice(0, 40), contrast.toFixed(2)]);
  }
  return found;
})()`;

/** What a screen reader could not name or place. */
export const UNNAMED = `(() => {
  const found = [];
  const ids = [...document.querySelectorAll("[id]")].map(({ id }) => id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) found.push("twice: " + id);
  for (const element of document.querySelectorAll("a[href], button, input, select, textarea, [role=tree], [role=table], [role=region], nav, aside")) {
    const labels = [...(element.labels ?? [])].map((label) => label.innerText).join(" ");
    const name = element.getAttribute("aria-label") ?? (labels || element.textContent);
    if (name.trim() === "") found.push("no name: " + element.outerHTML.slice(0, 80));
  }
  for (const [selector, count] of [["main", 1], ["header", 1], ["nav", 1], ["html[lang]", 1]]) {
    if (document.querySelectorAll(selector).length !== count) found.push(selector);
  }
  for (const item of document.querySelectorAll("[role=treeitem]")) {
    if (!item.closest("[role=tree]") || !item.hasAttribute("aria-level")) found.push(item.id);
  }
  for (const row of document.querySelectorAll("[role=row]")) if (!row.closest("[role=table]")) found.push("a row without a table");
  return found;
})()`;

/** Parts that stick out of the screen to the right. */
export const OVERFLOWING = `(() => {
  if (document.documentElement.scrollWidth <= innerWidth) {
    return [...document.querySelectorAll("main *")]
      .filter((element) => element.checkVisibility() && element.getBoundingClientRect().right > innerWidth + 1)
      .map((element) => element.className + ": " + element.textContent.slice(0, 40));
  }
  return ["the page is " + document.documentElement.scrollWidth + " wide"];
})()`;

export const ERRORS = "window.errors";

/** The label of what has the focus, and whether the focus can be seen. */
export const FOCUS = `(() => {
  const { id, className, tagName } = document.activeElement;
  const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
  return { id, className, tagName, isVisible: outlineStyle !== "none" && parseFloat(outlineWidth) >= 1 };
})()`;
