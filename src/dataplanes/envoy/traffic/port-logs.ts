import type { PortItem } from "../../../plan/plan.ts";
import { jsonLog } from "../messages/file-log.ts";
import type * as proto from "../wire/proto.ts";
import type { Message } from "../wire/protobuf.ts";
import { recordFormat } from "./access-log.ts";
import { trafficLog } from "./traffic-line.ts";

export interface PortLogs {
  /** Where requests are counted, and recorded if that is wanted; absent: neither. */
  readonly path?: string | undefined;
  /** Records in the file; those on standard output are for whoever has started Envoy. */
  readonly isRecorded: boolean;
  readonly isPrinted: boolean;
  /** Whether records are of traced requests alone. */
  readonly onlySampled: boolean;
  readonly isTraced: boolean;
}

/** The logs of a port. A request whose record is in the file is counted by that. */
export function portLogs(port: PortItem, logs: PortLogs): readonly Message<proto.AccessLog>[] {
  const { path, isRecorded, isPrinted, onlySampled, isTraced } = logs;
  const shape = { fields: recordFormat(port, isTraced), onlyTraced: onlySampled };
  return [
    ...(isPrinted ? [jsonLog(shape)] : []),
    ...(isRecorded && path !== undefined ? [jsonLog({ ...shape, path })] : []),
    ...(path === undefined || (isRecorded && !onlySampled) ? [] : [trafficLog(path)]),
  ];
}
