import { redirectLocation } from "../../../matching/redirect.ts";
import type { RedirectAction } from "../../../plan/rule.ts";
import { addAnswerFields, applyEdits } from "../message/edit-headers.ts";
import { HeaderFields } from "../message/header-fields.ts";
import type { RoutedRequest } from "./routed-request.ts";

export function redirect(request: RoutedRequest, action: RedirectAction): void {
  const { exchange, authority, path, query } = request;
  const location = redirectLocation(action, {
    scheme: exchange.connection.secure ? "https" : "http",
    authority,
    path,
    query,
    listenerPort: exchange.connection.port.port,
    matched: request.rule?.match.path,
  });
  const headers = new HeaderFields(["location", location]);
  applyEdits(headers, action.filters.responseHeaders);
  addAnswerFields(headers, request.answerFields);
  exchange.answer(action.statusCode, headers, false);
}
