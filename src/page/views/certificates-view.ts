/** Certificates of listeners: for which names, until when, and what does not fit. */
import { type Child, element, link } from "../dom/element.ts";
import { pill } from "../dom/pill.ts";
import {
  type CertificateRow,
  certificateRows,
  findCertificates,
  renewalUrgencyOf,
} from "../model/certificates.ts";
import { treeFragment } from "../model/place.ts";
import { counted, durationText } from "../model/row-text.ts";
import { listenerNodeId } from "../model/tree.ts";
import { Table } from "./table.ts";
import type { View, ViewContext } from "./view.ts";

/** More listeners than anybody reads in one row. */
const SHOWN_USES = 6;

export class CertificatesView implements View {
  readonly title = "Certificates";
  readonly element: HTMLElement;
  readonly #table = new Table<CertificateRow>({
    label: "All certificates",
    columns: ["Secret", "Names", "Ends", "Used by"],
    guess: 60,
    className: "certificates",
    keyOf: ({ secret }) => secret,
    signatureOf: ({ names, notAfter, problem, uses, daysLeft }) =>
      JSON.stringify([
        names,
        notAfter,
        problem,
        Math.floor(daysLeft ?? 0),
        uses.map(({ listener, isForHostname }) => [listener.key, listener.hostname, isForHostname]),
      ]),
    cellsOf,
  });

  constructor() {
    this.element = element(
      "section",
      { class: "view", "aria-label": "Certificates" },
      element("h1", { class: "hidden" }, this.title),
      this.#table.element,
    );
  }

  show({ world, search }: ViewContext): void {
    const rows = findCertificates(certificateRows(world.outline, Date.now()), search);
    this.#table.setRows(
      rows,
      search === "" ? "No listener has a certificate." : `No certificate has “${search}”.`,
    );
  }
}

function cellsOf(row: CertificateRow): readonly (readonly Child[])[] {
  const { secret, names, problem, uses } = row;
  const more = uses.length - SHOWN_USES;
  return [
    [element("span", { class: "title" }, secret)],
    problem === undefined
      ? [element("span", { class: "names" }, names.join(", "))]
      : [pill("bad", `cannot be used: ${problem}`)],
    [ending(row)],
    [
      ...uses
        .slice(0, SHOWN_USES)
        .map(({ owner, listener, isForHostname }) =>
          element(
            "div",
            { class: "claim" },
            link(
              treeFragment(listenerNodeId({ ...owner, section: listener.section })),
              `${owner.kind} ${owner.namespace}/${owner.name} · ${listener.section}`,
            ),
            !isForHostname && " ",
            !isForHostname && pill("bad", `not for ${listener.hostname}`),
          ),
        ),
      more > 0 && element("div", { class: "meta" }, `and ${counted(more, "more listener")}`),
    ],
  ];
}

function ending(row: CertificateRow): Child {
  const { notAfter, daysLeft } = row;
  if (notAfter === undefined || daysLeft === undefined) return undefined;
  const time = durationText(Math.abs(daysLeft) * 86_400);
  const when = daysLeft < 0 ? `ended ${time} ago` : `in ${time}`;
  const tone = daysLeft < 0 ? "bad" : renewalUrgencyOf({ ...row, uses: [] }) === "soon" ? "warn" : "good";
  return element(
    "span",
    {},
    pill(tone, when),
    element("span", { class: "meta" }, ` ${notAfter.slice(0, 10)}`),
  );
}
