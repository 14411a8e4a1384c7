/** The page of the admin server. It only reads, and draws everything from text nodes. */
import type { ReadingScope } from "../view/written/reading-scope.ts";
import { element, part, replaceChildren } from "./dom/element.ts";
import { keepTheme } from "./dom/theme.ts";
import { LiveWorld } from "./live/world.ts";
import { fragmentOf, type Place, readPlace, textParameter, VIEWS, type ViewName } from "./model/place.ts";
import { scopeText } from "./model/scope-text.ts";
import { CertificatesView } from "./views/certificates-view.ts";
import { ExplainView } from "./views/explain-view.ts";
import { HostnamesView } from "./views/hostnames-view.ts";
import { TimelineView } from "./views/timeline-view.ts";
import { TreeView } from "./views/tree-view.ts";
import type { View } from "./views/view.ts";

const views: Readonly<Record<ViewName, View>> = {
  tree: new TreeView(),
  hostnames: new HostnamesView(),
  explain: new ExplainView(),
  certificates: new CertificatesView(),
  timeline: new TimelineView(),
};

const main = part<HTMLElement>("main");
const search = part<HTMLInputElement>("#search");
const status = part<HTMLElement>(".live");
const scopeNote = part<HTMLElement>(".scope");
const tabs = VIEWS.map((name) => element("a", { href: `#/${name}` }, views[name].title));
let place = readPlace(location.hash);
let isScheduled = false;

const live = new LiveWorld((changed) => {
  if (changed === "connection") showConnection();
  schedule();
});

/** Many events in a row are drawn once. */
function schedule(): void {
  if (isScheduled) return;
  isScheduled = true;
  requestAnimationFrame(() => {
    isScheduled = false;
    show();
  });
}

function go(to: Place, how: "push" | "replace" = "push"): void {
  if (how === "push") location.hash = fragmentOf(to);
  else {
    history.replaceState(undefined, "", fragmentOf(to));
    place = to;
  }
}

function show(): void {
  const view = views[place.view];
  for (const [index, name] of VIEWS.entries()) {
    const tab = tabs[index];
    // The search goes along from view to view.
    tab?.setAttribute("href", fragmentOf({ view: name, parameters: { q: search.value } }));
    if (name === place.view) tab?.setAttribute("aria-current", "page");
    else tab?.removeAttribute("aria-current");
  }
  document.title = `${view.title} – Mergeway`;
  const { world } = live;
  if (world === undefined) {
    replaceChildren(
      main,
      element(
        "p",
        { class: "empty" },
        live.connection === "lost" ? "The admin server does not answer." : "Reading the Gateway…",
      ),
    );
    return;
  }
  showScope(world.scope);
  if (view.element.parentElement !== main) replaceChildren(main, view.element);
  view.show({ world, live, place, search: textParameter(place, "q"), go });
}

function showScope(scope: ReadingScope | undefined): void {
  const text = scopeText(scope);
  scopeNote.hidden = text === undefined;
  scopeNote.textContent = text?.short ?? "";
  scopeNote.title = text?.long ?? "";
}

function showConnection(): void {
  const texts = { connecting: "connecting", live: "live", lost: "connection lost" } as const;
  status.textContent = texts[live.connection];
  status.dataset["state"] = live.connection;
}

function followUrl(): void {
  place = readPlace(location.hash);
  const wanted = textParameter(place, "q");
  if (search.value.trim() !== wanted) search.value = wanted;
  show();
}

search.addEventListener("input", () => {
  const q = search.value.trim();
  go({ ...place, parameters: { ...place.parameters, q } }, "replace");
  show();
});

search.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" && event.key !== "Enter" && event.key !== "ArrowDown") return;
  if (event.key === "Escape" && search.value !== "") {
    search.value = "";
    search.dispatchEvent(new Event("input"));
  }
  event.preventDefault();
  main.querySelector<HTMLElement>("[tabindex='0']")?.focus();
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  const { target } = event;
  if (target instanceof HTMLElement && target.matches("input, textarea, select")) return;
  event.preventDefault();
  search.focus();
  search.select();
});

part<HTMLAnchorElement>(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  (main.querySelector<HTMLElement>("[tabindex='0'], input") ?? main).focus();
});

part(".tabs").append(...tabs);
keepTheme(part<HTMLButtonElement>(".theme"));
window.addEventListener("hashchange", followUrl);
showConnection();
followUrl();
live.start();
