/** Pieces that many messages share (envoy.config.core.v3, envoy.type, google.protobuf). */

import {
  double,
  explicitText,
  type Field,
  flag,
  type Message,
  map,
  message,
  nested,
  nestedEach,
  text,
  uint,
} from "../wire/protobuf.ts";

export function typeUrl(type: string): string {
  return `type.googleapis.com/${type}`;
}

export function any(type: string, value: Message): Message {
  return message(text(1, typeUrl(type)), nested(2, value));
}

export function duration(number: number, milliseconds: number | undefined): Field {
  if (milliseconds === undefined) return undefined;
  const seconds = Math.floor(milliseconds / 1000);
  return nested(
    number,
    message(uint(1, seconds), uint(2, Math.round((milliseconds - seconds * 1000) * 1e6))),
  );
}

export function uint32Value(number: number, value: number | undefined): Field {
  return value === undefined ? undefined : nested(number, message(uint(1, value)));
}

export function boolValue(number: number, value: boolean | undefined): Field {
  return value === undefined ? undefined : nested(number, message(flag(1, value)));
}

export type StructValue = string | number | boolean | { readonly [key: string]: StructValue };

export function struct(fields: { readonly [key: string]: StructValue }): Message {
  return message(
    map(
      1,
      Object.entries(fields).map(([key, value]) => [key, structValue(value)] as const),
    ),
  );
}

function structValue(value: StructValue): Message {
  if (typeof value === "string") return message(explicitText(3, value));
  if (typeof value === "number") return message(double(2, value));
  if (typeof value === "boolean") return message(uint(4, value ? 1 : 0));
  return message(nested(5, struct(value)));
}

export function inlineBytes(value: string): Message {
  return message(nested(2, Buffer.from(value, "utf8")));
}

export function inlineString(value: string): Message {
  return message(explicitText(3, value));
}

/** This very stream; without a limit Envoy waits for the first answer, as long as it takes. */
export function adsSource(options: { readonly waits?: boolean } = {}): Message {
  return message(nested(3, message()), options.waits === true ? duration(4, 0) : undefined, uint(6, 2));
}

export function extension(name: string, type: string, config: Message): Message {
  return message(text(1, name), nested(2, any(type, config)));
}

export function socketAddress(address: string, port: number, protocol: "tcp" | "udp" = "tcp"): Message {
  // The address for all of IPv6 stands for IPv4 as well.
  const both = address === "::";
  return message(
    nested(1, message(uint(1, protocol === "udp" ? 1 : 0), text(2, address), uint(3, port), flag(6, both))),
  );
}

/** A range of addresses, and how many bits they have in common. */
export type Cidr = readonly [address: string, length: number];

/** Of xds.core.v3 and of envoy.config.core.v3 alike. */
export function cidrRange([address, length]: Cidr): Message {
  return message(text(1, address), uint32Value(2, length));
}

/** A share out of a million, which is as fine as Envoy goes. */
export function fraction(numerator: number): Message {
  return message(nested(1, message(uint(1, numerator), uint(2, 2))));
}

export const MILLION = 1_000_000;

export function exactMatcher(value: string): Message {
  return message(explicitText(1, value));
}

export function regex(pattern: string): Message {
  return message(text(2, pattern));
}

export function regexMatcher(pattern: string): Message {
  return message(nested(5, regex(pattern)));
}

export function substitution(pattern: string, replacement: string): Message {
  return message(nested(1, regex(pattern)), text(2, replacement));
}

export type HeaderMode = "append" | "add-if-absent" | "overwrite";
const modes: readonly HeaderMode[] = ["append", "add-if-absent", "overwrite"];

export function headerOption(name: string, value: string, mode: HeaderMode, unlessEmpty = false): Message {
  return message(
    nested(1, message(text(1, name), text(2, value))),
    uint(3, modes.indexOf(mode)),
    flag(4, !unlessEmpty),
  );
}

export function headerOptions(number: number, options: readonly Message[]): readonly Field[] {
  return nestedEach(number, options);
}
