/**
 * Fields of a request as its client has sent them, kept for logs: the router replaces them with its
 * own (envoy.extensions.filters.http.header_to_metadata.v3).
 */

import * as proto from "../wire/proto.ts";
import { type Message, message, nested, nestedEach, text } from "../wire/protobuf.ts";
import { httpFilter } from "./http-filters.ts";

const NAMESPACE = "mergeway.client";

export type KeptField = ":path" | "traceparent";

export function keepingFilter(fields: readonly KeptField[]): Message<proto.HttpFilter> {
  const rules = fields.map((field) => {
    const kept = message(
      text(proto.HeaderToMetadataKeyValue.metadataNamespace, NAMESPACE),
      text(proto.HeaderToMetadataKeyValue.key, keyOf(field)),
    );
    return message(
      text(proto.HeaderToMetadataRule.header, field),
      nested(proto.HeaderToMetadataRule.onHeaderPresent, kept),
    );
  });
  return httpFilter(
    "mergeway.client-fields",
    "envoy.extensions.filters.http.header_to_metadata.v3.Config",
    message(nestedEach(proto.HeaderToMetadata.requestRules, rules)),
  );
}

/** In the format of a log. */
export function keptField(field: KeptField, longest: number): string {
  return `%DYNAMIC_METADATA(${NAMESPACE}:${keyOf(field)}):${longest}%`;
}

function keyOf(field: KeptField): string {
  return field.replace(":", "");
}
