/** Pieces that many messages share (envoy.config.core.v3, envoy.type, google.protobuf). */

import * as proto from "../wire/proto.ts";
import {
  bytes,
  double,
  type EncodedField,
  type EnumValue,
  enumValue,
  explicitText,
  flag,
  type Message,
  map,
  message,
  type NestedField,
  nested,
  text,
  uint,
} from "../wire/protobuf.ts";

export function typeUrl(type: string): string {
  return `type.googleapis.com/${type}`;
}

export function any<Type extends string>(type: Type, value: Message<Type>): Message<proto.Any> {
  return message(text(proto.Any.typeUrl, typeUrl(type)), bytes(proto.Any.value, value));
}

export function duration<Owner extends string>(
  field: NestedField<Owner, proto.Duration>,
  milliseconds: number | undefined,
): EncodedField<Owner> {
  if (milliseconds === undefined) return undefined;
  const seconds = Math.floor(milliseconds / 1000);
  const nanos = Math.round((milliseconds - seconds * 1000) * 1e6);
  return nested(field, message(uint(proto.Duration.seconds, seconds), uint(proto.Duration.nanos, nanos)));
}

export function uint32Value<Owner extends string>(
  field: NestedField<Owner, proto.UInt32Value>,
  value: number | undefined,
): EncodedField<Owner> {
  return value === undefined ? undefined : nested(field, message(uint(proto.UInt32Value.value, value)));
}

export function boolValue<Owner extends string>(
  field: NestedField<Owner, proto.BoolValue>,
  value: boolean | undefined,
): EncodedField<Owner> {
  return value === undefined ? undefined : nested(field, message(flag(proto.BoolValue.value, value)));
}

export type StructValue = string | number | boolean | { readonly [key: string]: StructValue };

export function struct(fields: { readonly [key: string]: StructValue }): Message<proto.Struct> {
  return message(
    map(
      proto.Struct.fields,
      Object.entries(fields).map(([key, value]) => [key, structValue(value)] as const),
    ),
  );
}

function structValue(value: StructValue): Message<proto.Value> {
  if (typeof value === "string") return message(explicitText(proto.Value.stringValue, value));
  if (typeof value === "number") return message(double(proto.Value.numberValue, value));
  if (typeof value === "boolean") return message(flag(proto.Value.boolValue, value));
  return message(nested(proto.Value.structValue, struct(value)));
}

export function inlineBytes(value: string): Message<proto.DataSource> {
  return message(bytes(proto.DataSource.inlineBytes, Buffer.from(value, "utf8")));
}

export function inlineString(value: string): Message<proto.DataSource> {
  return message(explicitText(proto.DataSource.inlineString, value));
}

/** This very stream; without a limit Envoy waits for the first answer, as long as it takes. */
export function adsSource(options: { readonly waits?: boolean } = {}): Message<proto.ConfigSource> {
  return message(
    nested(proto.ConfigSource.ads, message()),
    options.waits === true ? duration(proto.ConfigSource.initialFetchTimeout, 0) : undefined,
    enumValue(proto.ConfigSource.resourceApiVersion, proto.ApiVersion.V3),
  );
}

export function extension<Type extends string>(
  name: string,
  type: Type,
  config: Message<Type>,
): Message<proto.TypedExtensionConfig> {
  return message(
    text(proto.TypedExtensionConfig.name, name),
    nested(proto.TypedExtensionConfig.typedConfig, any(type, config)),
  );
}

/** The same within a matcher, whose messages are of xDS and not of Envoy. */
export function matcherExtension<Type extends string>(
  name: string,
  type: Type,
  config: Message<Type>,
): Message<proto.XdsExtension> {
  return message(
    text(proto.XdsExtension.name, name),
    nested(proto.XdsExtension.typedConfig, any(type, config)),
  );
}

export function socketAddress(
  address: string,
  port: number,
  protocol: "tcp" | "udp" = "tcp",
): Message<proto.Address> {
  // The address for all of IPv6 stands for IPv4 as well.
  const both = address === "::";
  const socket = message(
    enumValue(proto.SocketAddress.protocol, proto.Protocol[protocol === "udp" ? "UDP" : "TCP"]),
    text(proto.SocketAddress.address, address),
    uint(proto.SocketAddress.portValue, port),
    flag(proto.SocketAddress.ipv4Compat, both),
  );
  return message(nested(proto.Address.socketAddress, socket));
}

/** A range of addresses, and how many bits they have in common. */
export type Cidr = readonly [address: string, length: number];

export function cidrRange([address, length]: Cidr): Message<proto.CidrRange> {
  return message(
    text(proto.CidrRange.addressPrefix, address),
    uint32Value(proto.CidrRange.prefixLen, length),
  );
}

/** A share out of a million, which is as fine as Envoy goes. */
export function fraction(numerator: number): Message<proto.RuntimeFractionalPercent> {
  const percent = message(
    uint(proto.FractionalPercent.numerator, numerator),
    enumValue(proto.FractionalPercent.denominator, proto.DenominatorType.MILLION),
  );
  return message(nested(proto.RuntimeFractionalPercent.defaultValue, percent));
}

export const MILLION = 1_000_000;

export function exactMatcher(value: string): Message<proto.StringMatcher> {
  return message(explicitText(proto.StringMatcher.exact, value));
}

export function regex(pattern: string): Message<proto.RegexMatcher> {
  return message(text(proto.RegexMatcher.regex, pattern));
}

export function regexMatcher(pattern: string): Message<proto.StringMatcher> {
  return message(nested(proto.StringMatcher.safeRegex, regex(pattern)));
}

export function substitution(pattern: string, replacement: string): Message<proto.RegexMatchAndSubstitute> {
  return message(
    nested(proto.RegexMatchAndSubstitute.pattern, regex(pattern)),
    text(proto.RegexMatchAndSubstitute.substitution, replacement),
  );
}

export type HeaderMode = "append" | "add-if-absent" | "overwrite";
const APPEND_ACTIONS: Readonly<Record<HeaderMode, EnumValue<proto.HeaderAppendAction>>> = {
  append: proto.HeaderAppendAction.APPEND_IF_EXISTS_OR_ADD,
  "add-if-absent": proto.HeaderAppendAction.ADD_IF_ABSENT,
  overwrite: proto.HeaderAppendAction.OVERWRITE_IF_EXISTS_OR_ADD,
};

export function headerOption(
  name: string,
  value: string,
  mode: HeaderMode,
  unlessEmpty = false,
): Message<proto.HeaderValueOption> {
  const header = message(text(proto.HeaderValue.key, name), text(proto.HeaderValue.value, value));
  return message(
    nested(proto.HeaderValueOption.header, header),
    enumValue(proto.HeaderValueOption.appendAction, APPEND_ACTIONS[mode]),
    flag(proto.HeaderValueOption.keepEmptyValue, !unlessEmpty),
  );
}
