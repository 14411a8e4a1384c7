/** Where a request would go, and why nowhere else: the answer of /api/v1/explain. */
import type { FullExplanation } from "../../view/explain/full-explanation.ts";
import type { Outline } from "../../view/outline.ts";
import { type Child, element, link, part, redraw, replaceChildren } from "../dom/element.ts";
import { portTables } from "../model/hostnames.ts";
import { fragmentOf, listParameter, textParameter } from "../model/place.ts";
import { explanationParts } from "./explanation.ts";
import type { View, ViewContext } from "./view.ts";

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"];
const EXAMPLES = 4;

export class ExplainView implements View {
  readonly title = "Explain";
  readonly element: HTMLElement;
  readonly #form: HTMLFormElement;
  readonly #limits = element(
    "p",
    { class: "note quiet", hidden: true },
    "Where a request goes depends on everything that the Gateway has, and you may not read all of it. Ask whoever owns the Gateway.",
  );
  readonly #examples = element("p", { class: "examples" });
  readonly #answer = element("div", { class: "answer", "aria-live": "polite" });
  #context: ViewContext | undefined;
  /** What the shown answer is for: the question and the state. */
  #asked: readonly [question: string, outline: unknown] = ["", undefined];

  constructor() {
    this.#form = questionForm();
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#ask();
    });
    this.element = element(
      "section",
      { class: "view", "aria-label": "Explain" },
      element(
        "div",
        { class: "scroller explain", tabindex: "-1" },
        element("h1", {}, "Where would a request go?"),
        this.#limits,
        this.#form,
        this.#examples,
        this.#answer,
      ),
    );
  }

  show(context: ViewContext): void {
    this.#context = context;
    const { world, place } = context;
    const isLimited = world.scope !== undefined && world.scope.sees !== "all";
    this.#limits.hidden = !isLimited;
    this.#form.hidden = isLimited;
    if (isLimited) return;
    const query = questionOf(place);
    if (query !== this.#asked[0]) this.#fill();
    const urls = exampleUrls(world.outline);
    redraw(this.#examples, urls.join(" "), () => examples(urls));
    if (query === this.#asked[0] && world.outline === this.#asked[1]) return;
    this.#asked = [query, world.outline];
    if (query === "") replaceChildren(this.#answer);
    else void this.#explain(query);
  }

  #fill(): void {
    if (this.#context === undefined) return;
    const { place } = this.#context;
    part<HTMLInputElement>("#url", this.#form).value = textParameter(place, "url");
    part<HTMLSelectElement>("#method", this.#form).value = textParameter(place, "method") || "GET";
    part<HTMLTextAreaElement>("#headers", this.#form).value = listParameter(place, "header").join("\n");
    part<HTMLInputElement>("#client", this.#form).value = textParameter(place, "client");
    part<HTMLInputElement>("[name=certificate]", this.#form).checked =
      textParameter(place, "certificate") === "valid";
  }

  #ask(): void {
    const data = new FormData(this.#form);
    const text = (name: string): string => String(data.get(name) ?? "").trim();
    const method = text("method");
    this.#context?.go({
      view: "explain",
      parameters: {
        url: text("url"),
        method: method === "GET" ? "" : method,
        header: text("headers")
          .split("\n")
          .map((line) => line.trim()),
        client: text("client"),
        certificate: data.has("certificate") ? "valid" : "",
      },
    });
  }

  async #explain(query: string): Promise<void> {
    let children: readonly Child[];
    try {
      const response = await fetch(`/api/v1/explain?${query}`);
      const answer = (await response.json()) as FullExplanation & { readonly error?: string };
      children = response.ok
        ? explanationParts(answer)
        : [element("p", { class: "note bad" }, answer.error ?? "")];
    } catch {
      children = [element("p", { class: "note bad" }, "The admin server does not answer.")];
    }
    // Another question may have come in between.
    if (query === this.#asked[0]) replaceChildren(this.#answer, ...children);
  }
}

function questionOf(place: ViewContext["place"]): string {
  const url = textParameter(place, "url");
  if (url === "") return "";
  const query = new URLSearchParams({ url, method: textParameter(place, "method") || "GET" });
  for (const header of listParameter(place, "header")) if (header !== "") query.append("header", header);
  const client = textParameter(place, "client");
  if (client !== "") query.set("client", client);
  if (textParameter(place, "certificate") === "valid") query.set("clientCertificate", "valid");
  return query.toString();
}

function field(label: string, id: string, input: HTMLElement): HTMLElement {
  return element("div", { class: `field ${id}` }, element("label", { for: id }, label), input);
}

/** Contested hostnames first: they are the most interesting to ask about. */
function exampleUrls(outline: Outline): readonly string[] {
  return portTables(outline)
    .flatMap(({ rows }) => rows)
    .filter(({ hostname }) => hostname !== "")
    .sort((a, b) => b.others.length - a.others.length)
    .flatMap(({ holder, hostname, port }) => {
      const scheme = holder?.listener.protocol.toLowerCase();
      const isHttp = scheme === "http" || scheme === "https";
      return isHttp ? [`${scheme}://${hostname.replace(/^\*/, "some")}:${port}/`] : [];
    })
    .slice(0, EXAMPLES);
}

function examples(urls: readonly string[]): readonly Child[] {
  if (urls.length === 0) return [];
  const links = urls.map((url) => link(fragmentOf({ view: "explain", parameters: { url } }), url));
  return ["Try ", ...links.flatMap((each, index) => [index === 0 ? "" : ", ", each])];
}

function questionForm(): HTMLFormElement {
  return element(
    "form",
    { class: "question" },
    field(
      "URL",
      "url",
      element("input", {
        id: "url",
        name: "url",
        type: "text",
        required: true,
        spellcheck: "false",
        autocomplete: "off",
        placeholder: "https://shop.example.com/cart",
      }),
    ),
    field(
      "Method",
      "method",
      element(
        "select",
        { id: "method", name: "method" },
        ...METHODS.map((each) => element("option", {}, each)),
      ),
    ),
    field(
      "Headers, one per line",
      "headers",
      element("textarea", {
        id: "headers",
        name: "headers",
        rows: 2,
        spellcheck: "false",
        placeholder: "Name: value",
      }),
    ),
    field(
      "Client address, for policies",
      "client",
      element("input", {
        id: "client",
        name: "client",
        type: "text",
        spellcheck: "false",
        autocomplete: "off",
        placeholder: "203.0.113.7",
      }),
    ),
    element(
      "label",
      { class: "check" },
      element("input", { type: "checkbox", name: "certificate" }),
      " with a valid client certificate",
    ),
    element("button", { type: "submit", class: "primary" }, "Explain"),
  );
}
