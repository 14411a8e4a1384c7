/** A fixed answer as routes of Envoy. */
import type { RespondAction } from "../../../../plan/rule.ts";
import { headerOption } from "../../messages/core.ts";
import { headerMatch, type RouteActionShape, type RouteShape } from "../../messages/route.ts";
import type * as proto from "../../wire/proto.ts";
import type { Message } from "../../wire/protobuf.ts";
import { answeredName } from "../names.ts";
import { escaped } from "./header-edits.ts";
import { isStatus } from "./servable.ts";

/** What a route has besides the match and the guards of its rule. */
export interface AnsweringRoute extends Pick<RouteShape, "name" | "action" | "responseHeaders"> {
  /** Must match besides. */
  readonly headers: readonly Message<proto.HeaderMatcher>[];
}

const BROKEN: RouteActionShape = { type: "respond", status: 500 };

export function respondRoutes({ status, content }: RespondAction, name: string): readonly AnsweringRoute[] {
  if (!isStatus(status)) return [{ name, action: BROKEN, headers: [] }];
  if (content === undefined) return [{ name, action: { type: "respond", status }, headers: [] }];
  const { type, text, retryAfterSeconds } = content;
  const fields = [
    ["cache-control", "no-store"],
    ...(text === "" ? [] : [["content-type", type]]),
    ...(retryAfterSeconds === undefined ? [] : [["retry-after", String(retryAfterSeconds)]]),
  ] as const;
  const options = fields.map(([field = "", value = ""]) => headerOption(field, escaped(value), "overwrite"));
  const answered = answeredName(name);
  return [
    // Envoy would put the text into a field of the header.
    { name: answered, action: { type: "respond", status }, headers: [isGrpc] },
    {
      name: answered,
      action: { type: "respond", status, ...(text === "" ? {} : { text }) },
      headers: [],
      responseHeaders: { options, remove: [] },
    },
  ];
}

const isGrpc: Message<proto.HeaderMatcher> = headerMatch({
  name: "content-type",
  type: "regex",
  value: "application/grpc(?:[+;].*)?",
});
