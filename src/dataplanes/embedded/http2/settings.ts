import { HEADER_TABLE_BYTES } from "./hpack/encoder.ts";
import { DEFAULT_WINDOW_BYTES, errorCode, MAX_FRAME_BYTES, MAX_WINDOW_BYTES, setting } from "./protocol.ts";

/** The settings of a peer (RFC 9113, 6.5.2). */
export interface PeerSettings {
  headerTableSize: number;
  maxConcurrentStreams: number;
  initialWindowSize: number;
}

export function defaultSettings(): PeerSettings {
  return {
    headerTableSize: HEADER_TABLE_BYTES,
    maxConcurrentStreams: Number.POSITIVE_INFINITY,
    initialWindowSize: DEFAULT_WINDOW_BYTES,
  };
}

/** Applies a SETTINGS payload. Returns the code of a connection error, if there is one. */
export function readSettings(
  settings: PeerSettings,
  bytes: Buffer,
  { start, end, fromServer }: { readonly start: number; readonly end: number; readonly fromServer: boolean },
): number | undefined {
  for (let at = start; at + 6 <= end; at += 6) {
    const value = bytes.readUInt32BE(at + 2);
    switch (bytes.readUInt16BE(at)) {
      case setting.headerTableSize:
        settings.headerTableSize = value;
        break;
      case setting.enablePush:
        if (value > (fromServer ? 0 : 1)) return errorCode.protocolError;
        break;
      case setting.maxConcurrentStreams:
        settings.maxConcurrentStreams = value;
        break;
      case setting.initialWindowSize:
        if (value > MAX_WINDOW_BYTES) return errorCode.flowControlError;
        settings.initialWindowSize = value;
        break;
      case setting.maxFrameSize:
        if (value < MAX_FRAME_BYTES || value > 0xff_ffff) return errorCode.protocolError;
        break;
      case setting.enableConnectProtocol:
        if (value > 1) return errorCode.protocolError;
        break;
      default:
        break;
    }
  }
  return undefined;
}
