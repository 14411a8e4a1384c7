/** Access logs in files and on standard output (envoy.extensions.access_loggers). */

import * as proto from "../wire/proto.ts";
import { type Message, message, nested, text } from "../wire/protobuf.ts";
import { any, inlineString, struct } from "./core.ts";
import { headerMatch } from "./route.ts";

/** One line of text per request. The format has its own line end. */
export function fileTextLog(path: string, format: string): Message<proto.AccessLog> {
  const logFormat = message(nested(proto.SubstitutionFormatString.textFormatSource, inlineString(format)));
  return fileLog(path, logFormat, undefined);
}

/**
 * Envoy writes into its request ids whether it has drawn a request to be traced: the 15th digit is
 * 4 in those of others. Its own filter of traced requests takes those alone that a header forces.
 */
const drawn: Message<proto.HeaderFilter> = message(
  nested(
    proto.HeaderFilter.header,
    headerMatch({ name: "x-request-id", type: "regex", value: ".{8}-.{4}-[^4].*" }),
  ),
);

export interface JsonLogShape {
  readonly fields: Readonly<Record<string, string>>;
  /** Absent: standard output. */
  readonly path?: string | undefined;
  /** Whether requests that are not traced are left out. */
  readonly onlyTraced: boolean;
}

/** One JSON object per line. */
export function jsonLog({ fields, path, onlyTraced }: JsonLogShape): Message<proto.AccessLog> {
  const format = message(nested(proto.SubstitutionFormatString.jsonFormat, struct(fields)));
  const filter = onlyTraced ? message(nested(proto.AccessLogFilter.headerFilter, drawn)) : undefined;
  if (path !== undefined) return fileLog(path, format, filter);
  const config = message(nested(proto.StdoutAccessLog.logFormat, format));
  return message(
    text(proto.AccessLog.name, "envoy.access_loggers.stdout"),
    nested(proto.AccessLog.filter, filter),
    nested(
      proto.AccessLog.typedConfig,
      any("envoy.extensions.access_loggers.stream.v3.StdoutAccessLog", config),
    ),
  );
}

function fileLog(
  path: string,
  logFormat: Message<proto.SubstitutionFormatString>,
  filter: Message<proto.AccessLogFilter> | undefined,
): Message<proto.AccessLog> {
  const config = message(
    text(proto.FileAccessLog.path, path),
    nested(proto.FileAccessLog.logFormat, logFormat),
  );
  return message(
    text(proto.AccessLog.name, "envoy.access_loggers.file"),
    nested(proto.AccessLog.filter, filter),
    nested(proto.AccessLog.typedConfig, any("envoy.extensions.access_loggers.file.v3.FileAccessLog", config)),
  );
}
