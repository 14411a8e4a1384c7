import type { LiveWorld, World } from "../live/world.ts";
import type { Place } from "../model/place.ts";

/** One of the page's views. It lives as long as the page; `element` is shown when it is chosen. */
export interface View {
  readonly title: string;
  readonly element: HTMLElement;
  /** The state, the URL or the traffic has changed. */
  show(context: ViewContext): void;
}

export interface ViewContext {
  readonly world: World;
  readonly live: LiveWorld;
  readonly place: Place;
  readonly search: string;
  /** Changes the URL; `replace` leaves no step in the history. */
  go(place: Place, how?: "push" | "replace"): void;
}
